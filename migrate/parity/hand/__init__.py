"""In: two models written by hand, one in each framework. Out: a verdict, Cell by Cell.

Nothing recorded how one became the other, so the partners are found first: weights by kind, name,
order and shape, then Cells by the weights below them and by the order of calls.

Import order inside this folder, each file from those before it only:
addresses, kinds, inventory, layouts, assignment, fusing, matching, alignment, cells, mapping
(pure); torch_noise, torch_side (the torch process); ms_noise, parts, watching, feeding, forward,
gradients, mindspore_side (the other process); session, checks, parameters, blame, climb, result.
"""
