"""In: the analysed files of a program. Out: the same files with their training loops as Cells.

A loop of zero_grad, forward, loss, backward and step is restructured before anything is renamed:
what computes the loss becomes a class of its own, the update a call of a train step. The result
is still torch code (but for names of ``torch2ms``, which rows of the table explain), so that the
ordinary rules convert it.

effects -> marks -> groups -> by_hand -> changes -> slices -> variables -> texts -> eval_loops ->
evaluation -> restructure; each imports only from those before it.
"""
