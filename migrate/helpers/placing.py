"""In: tensors, indices and values. Out: torch's index_put, sums to a shape and quotients."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.reduction import sum_of
from migrate.helpers.tensor import assign


def index_put(input, indices, values, accumulate=False):
    """torch.index_put: ``input`` with ``values`` at ``indices``; repeated ones may add up.

    ``indices`` is a tuple of index tensors for the first axes: whole numbers, or masks (these are
    PyNative only where values add up).
    """
    if not accumulate and indices[0].dtype == ms.bool_:
        if values.size == 1 and len(indices) == 1:
            mask = indices[0].reshape(indices[0].shape + (1,) * (input.ndim - indices[0].ndim))
            return ops.where(mask, values.reshape(()).astype(input.dtype), input)
        result = ops.deepcopy(input)
        result[tuple(indices)] = values
        return result
    indices = whole_indices(indices)
    lengths = input.shape[: len(indices)]
    place, count = 0, 1
    for index, length in zip(indices, lengths):
        place, count = place * length + index % length, count * length
    if place.size == 0:
        return ops.deepcopy(input)
    rest = input.shape[len(indices) :]
    source = values.astype(input.dtype).broadcast_to(place.shape + rest).reshape((place.size, -1))
    rows = input.reshape((count, -1))
    add = ops.tensor_scatter_add if accumulate else ops.tensor_scatter_update
    return add(rows, place.reshape((-1, 1)).astype(ms.int64), source).reshape(input.shape)


def whole_indices(indices):
    """The index tensors, each mask replaced by the places where it is true."""
    whole = []
    for index in indices:
        if index.dtype == ms.bool_:
            whole += list(ops.unbind(ops.nonzero(index), 1))
        else:
            whole.append(index)
    return whole


def sum_to_size(input, *size):
    """torch.Tensor.sum_to_size: the sum over the axes that broadcasting ``size`` would stretch."""
    wanted = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    extra = input.ndim - len(wanted)
    input = sum_of(input, tuple(range(extra)), False) if extra > 0 else input
    axes = tuple([i for i, n in enumerate(wanted) if n == 1 and input.shape[i] != 1])
    return sum_of(input, axes, True) if len(axes) > 0 else input


def fill_diagonal_(tensor, fill_value):
    """torch.Tensor.fill_diagonal_ of a matrix."""
    rows, columns = tensor.shape
    diagonal = ops.eye(rows, columns, ms.bool_)
    return assign(tensor, ops.where(diagonal, ops.full_like(tensor, fill_value), tensor))


def truncated_quotient(input, other):
    """torch.div with rounding_mode="trunc", exact for whole numbers too."""
    whole = (ms.int64, ms.int32, ms.int16, ms.int8, ms.uint8)
    if isinstance(input, ms.Tensor) and input.dtype in whole:
        floor = input // other
        exact = floor * other == input
        return ops.where(ops.logical_or(floor >= 0, exact), floor, floor + 1)
    return ops.stop_gradient(ops.trunc(input / other))  # of a division by 0 the kernel's is NaN
