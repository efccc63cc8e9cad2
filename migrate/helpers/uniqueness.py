"""In: tensors. Out: their different elements or slices, as torch.unique gives them."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.reduction import argsort


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """torch.unique: always sorted; inverse and counts are int64."""
    if dim is not None:
        values, inverse, counts = unique_slices(input, dim)
    else:
        values, inverse, counts = unique_elements(input)
    found = [values]
    if return_inverse:
        found.append(inverse)
    if return_counts:
        found.append(counts)
    return tuple(found) if len(found) > 1 else values


def unique_elements(input):
    """(the different elements in order, the number of each element among them, how often each)."""
    values, inverse, counts = unique_slices(input.reshape((-1, 1)), 0)
    return values.reshape((-1,)), inverse.reshape(input.shape), counts


def unique_slices(input, dim):
    """The same for the slices along ``dim``, in the order of their first differing elements."""
    slices = input.movedim(dim, 0)
    rows = slices.reshape((slices.shape[0], -1))
    keys = rows.astype(ms.int32) if input.dtype == ms.bool_ else rows
    order = ops.arange(rows.shape[0])
    for column in range(rows.shape[1] - 1, -1, -1):
        # the sort is stable: the leftmost column, sorted last, decides first
        order = order[argsort(keys[:, column][order])]
    ordered = keys[order]
    first = ops.ones((1,), ms.bool_)
    new = ops.cat((first, (ordered[1:] != ordered[:-1]).any(1)))
    number = ops.cumsum(new.astype(ms.int64), 0) - 1
    inverse = ops.tensor_scatter_elements(number, order, number, 0)
    kept = ops.nonzero(new)[:, 0]
    none = ops.zeros(inverse.shape, ms.int64)
    counts = ops.tensor_scatter_elements(none, inverse, ops.ones_like(inverse), 0, "add")
    values = ops.gather(slices, ops.gather(order, kept, 0), 0)
    return values.movedim(0, dim), inverse, ops.gather(counts, number[kept], 0)
