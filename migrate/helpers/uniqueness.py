"""In: tensors. Out: their different elements or slices, as torch.unique gives them."""

import mindspore as ms
from mindspore import ops


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """torch.unique: always sorted; inverse and counts are int64. PyNative only."""
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
    flat = input.reshape((-1,))
    flat = flat.astype(ms.int32) if input.dtype == ms.bool_ else flat
    values, number = ops.unique(flat)
    values, order = ops.sort(values) if values.shape[0] > 1 else (values, ops.arange(1))
    places = ops.arange(values.shape[0])
    rank = ops.tensor_scatter_elements(places, order.astype(ms.int64), places, 0)
    inverse = rank[number.astype(ms.int64)]
    return values.astype(input.dtype), inverse.reshape(input.shape), how_often(inverse, values)


def how_often(inverse, values):
    """How often each of ``values`` occurs, int64."""
    none = ops.zeros((values.shape[0],), ms.int64)
    return ops.tensor_scatter_elements(none, inverse, ops.ones_like(inverse), 0, "add")


def unique_slices(input, dim):
    """The same for the slices along ``dim``, in the order of their first differing elements."""
    slices = input.movedim(dim, 0)
    rows = slices.reshape((slices.shape[0], -1))
    keys = rows.astype(ms.int32) if input.dtype == ms.bool_ else rows
    order = ops.arange(rows.shape[0])
    for column in range(rows.shape[1] - 1, -1, -1):
        # the sort is stable: the leftmost column, sorted last, decides first
        order = order[ops.sort(keys[:, column][order])[1].astype(ms.int64)]
    ordered = keys[order]
    first = ops.ones((1,), ms.bool_)
    new = ops.cat((first, (ordered[1:] != ordered[:-1]).any(1)))
    number = ops.cumsum(new.astype(ms.int64), 0) - 1
    inverse = ops.tensor_scatter_elements(number, order, number, 0)
    values = slices[order[ops.nonzero(new)[:, 0]]]
    return values.movedim(0, dim), inverse, how_often(inverse, values)
