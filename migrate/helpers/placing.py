"""In: tensors, indices and sources. Out: torch's index_put, scatter_reduce and sum_to_size."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.tensor import assign


def index_put(input, indices, values, accumulate=False):
    """torch.Tensor.index_put: ``input`` with ``values`` at ``indices``; repeated ones may add up.

    ``indices`` is a tuple of index tensors for the first axes; with ``accumulate`` they must be
    whole numbers.
    """
    if not accumulate:
        result = input.copy()
        result[tuple(indices)] = values
        return result
    lengths = input.shape[: len(indices)]
    place = 0
    for index, length in zip(indices, lengths):
        place = place * length + index % length
    rest = input.shape[len(indices) :]
    values = values.astype(input.dtype).broadcast_to(place.shape + rest)
    count = 1
    for length in lengths:
        count = count * length
    rows = input.reshape((count, -1))
    source = values.reshape((place.size, -1))
    return ops.index_add(rows, place.reshape(-1).astype(ms.int32), source, 0).reshape(input.shape)


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """torch.scatter_reduce for "sum" and "mean". Raises NotImplementedError for the others."""
    if reduce not in ("sum", "mean"):
        raise NotImplementedError(f"scatter_reduce: {reduce!r} has no kernel in MindSpore")
    src = src[tuple([slice(0, length) for length in index.shape])].astype(input.dtype)
    ones = ops.ones(index.shape, dtype=input.dtype)
    count = ops.tensor_scatter_elements(ops.zeros_like(input), index, ones, dim, "add")
    if not include_self:
        input = ops.where(count > 0, ops.zeros_like(input), input)
    total = ops.tensor_scatter_elements(input, index, src, dim, "add")
    if reduce == "sum":
        return total
    return total / (count + 1 if include_self else count.clamp(min=1))


def sum_to_size(input, *size):
    """torch.Tensor.sum_to_size: the sum over the axes that broadcasting ``size`` would stretch."""
    wanted = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    extra = input.ndim - len(wanted)
    input = input.sum(tuple(range(extra))) if extra > 0 else input
    axes = tuple([i for i, n in enumerate(wanted) if n == 1 and input.shape[i] != 1])
    return input.sum(axes, keepdims=True) if len(axes) > 0 else input


def fill_diagonal_(tensor, fill_value):
    """torch.Tensor.fill_diagonal_ of a matrix."""
    rows, columns = tensor.shape
    diagonal = ops.eye(rows, columns, ms.bool_)
    return assign(tensor, ops.where(diagonal, ops.full_like(tensor, fill_value), tensor))
