"""Put training loops of an analysed program into Cells, as torch code.

A loop of zero_grad, forward, loss, backward and step is restructured before anything is renamed:
what computes the loss becomes a class of its own, the update a call of a train step. The result
is still torch code (but for names of ``torch2ms``, which rows of the table explain), so that the
ordinary rules convert it.
"""
