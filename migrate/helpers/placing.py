"""In: tensors, indices, sources. Out: torch's index_put, scatter_reduce, differences and runs."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.tensor import assign


def index_put(input, indices, values, accumulate=False):
    """torch.Tensor.index_put: ``input`` with ``values`` at ``indices``; repeated ones may add up.

    ``indices`` is a tuple of index tensors for the first axes: whole numbers, or one mask.
    """
    if accumulate and indices[0].dtype == ms.bool_:
        values, accumulate = values + input[tuple(indices)], False
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


def running_extreme(input, dim, largest):
    """torch.cummax and torch.cummin along ``dim``: (values, int64 indices)."""
    fixed = ops.stop_gradient(input)
    indices = ops.cummax(fixed, dim)[1] if largest else ops.cummin(fixed, dim)[1]
    indices = indices.astype(ms.int64)
    return ops.gather_elements(input, dim, indices), indices


def differences(input, n=1, dim=-1, prepend=None, append=None):
    """torch.diff: the n-th difference of neighbours along ``dim``."""
    parts = [part for part in (prepend, input, append) if part is not None]
    input = ops.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        length = input.shape[dim]
        input = ops.narrow(input, dim, 1, length - 1) - ops.narrow(input, dim, 0, length - 1)
    return input


def truncated_quotient(input, other):
    """torch.div with rounding_mode="trunc", exact for whole numbers too."""
    if isinstance(input, ms.Tensor) and input.dtype in (ms.int64, ms.int32, ms.int16, ms.int8):
        floor = input // other
        exact = floor * other == input
        return ops.where(ops.logical_or(floor >= 0, exact), floor, floor + 1)
    return ops.trunc(input / other)


def without_repeats(input):
    """torch.unique_consecutive of all elements: each run of equal values once."""
    flat = input.reshape(-1)
    first = ops.ones((1,), dtype=ms.bool_)
    return flat.masked_select(ops.cat((first, flat[1:] != flat[:-1])))
