"""In: a tensor, indices and sources. Out: what torch's scatters with a reduction make of them."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.dtypes import is_whole


def flat_places(shape, dim, index):
    """Where ``index`` along ``dim`` points to in a tensor of ``shape`` laid out flat, 1-d int64."""
    axis = dim + len(shape) if dim < 0 else dim
    place = ops.zeros(index.shape, ms.int64)
    for i, length in enumerate(shape):
        at = index.astype(ms.int64)
        if i != axis:
            at = ops.arange(index.shape[i]).reshape(
                [-1 if k == i else 1 for k in range(len(shape))]
            )
        place = place * length + at
    return place.reshape((-1,))


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """torch.scatter_reduce: "sum", "prod", "mean", "amax" or "amin" of what meets at a place.

    ``src`` is at least as large as ``index``. Where several elements are the largest (smallest),
    they share the gradient.
    """
    if input.ndim == 0:
        one = [part.reshape((1,)) for part in (input, index, src)]
        return scatter_reduce(one[0], 0, one[1], one[2], reduce, include_self=include_self)[0]
    src = src[tuple([slice(0, length) for length in index.shape])].reshape((-1,))
    places = flat_places(input.shape, dim, index)
    start, src = input.reshape((-1,)), src.astype(input.dtype)
    return reduce_at(start, places, src, reduce, include_self).reshape(input.shape)


def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """torch.index_reduce: "prod", "mean", "amax" or "amin" of the slices that meet at an index."""
    if input.ndim == 0:
        index = index.reshape(source.shape)
    else:
        axis = dim + input.ndim if dim < 0 else dim
        index = index.reshape([-1 if i == axis else 1 for i in range(input.ndim)])
        index = index.broadcast_to(source.shape)
    return scatter_reduce(input, dim, index, source, reduce, include_self=include_self)


def reduce_at(start, places, src, reduce, include_self):
    """The reduction of 1-d ``src`` into 1-d ``start`` at ``places``."""
    count = add_at(ops.zeros_like(start), places, ops.ones_like(src))
    if reduce in ("amax", "amin"):
        return extreme_at(start, places, src, reduce == "amax", include_self)
    if not include_self:
        neutral = ops.full_like(start, 1 if reduce == "prod" else 0)
        start = ops.where(count > 0, neutral, start)
    if reduce == "prod":
        return product_at(start, places, src)
    total = add_at(start, places, src)
    if reduce == "sum":
        return total
    divisor = count + 1 if include_self else ops.maximum(count, ops.ones_like(count))
    return ops.floor_divide(total, divisor) if is_whole(total) else total / divisor


def add_at(start, places, src):
    """1-d ``start`` with ``src`` added at ``places``."""
    return ops.tensor_scatter_elements(start, places, src, 0, "add")


def extreme_at(start, places, src, largest, include_self):
    """The largest (smallest) of what meets at a place: the mean of those that are equal to it."""
    if not include_self:
        # any source that lands there is as good a start as none
        start = ops.tensor_scatter_elements(start, places, ops.stop_gradient(src), 0)
    if not start.is_floating_point():
        kernel = ops.tensor_scatter_max if largest else ops.tensor_scatter_min
        return kernel(start, places.reshape((-1, 1)), src)
    kernel = ops.tensor_scatter_max if largest else ops.tensor_scatter_min
    fixed, fixed_src = ops.stop_gradient(start), ops.stop_gradient(src)
    found = kernel(fixed, places.reshape((-1, 1)), fixed_src)
    # NaN wins, which the kernel overlooks
    nothing = ops.zeros_like(fixed)
    found = found + add_at(
        ops.where(ops.isnan(fixed), fixed, nothing),
        places,
        ops.where(ops.isnan(fixed_src), fixed_src, ops.zeros_like(fixed_src)),
    )
    own, here = fixed == found, fixed_src == found[places]
    if not include_self:
        reached = add_at(ops.zeros_like(found), places, ops.ones_like(src)) > 0
        own = ops.logical_and(own, ops.logical_not(reached))
    total = add_at(
        ops.where(own, start, ops.zeros_like(start)),
        places,
        ops.where(here, src, ops.zeros_like(src)),
    )
    return total / add_at(own.astype(found.dtype), places, here.astype(found.dtype))


def product_at(start, places, src):
    """The product of what meets at a place; finite gradients where factors are zero."""
    whole = ops.tensor_scatter_mul(
        ops.stop_gradient(start), places.reshape((-1, 1)), ops.stop_gradient(src)
    )
    if not whole.is_floating_point():
        return whole
    at = ops.arange(start.shape[0])
    factors, where = ops.cat((start, src)), ops.cat((at, places))
    fixed = ops.stop_gradient(factors)
    absent = fixed == 0
    zeros = add_at(ops.zeros_like(whole), where, absent.astype(whole.dtype))
    safe = ops.where(absent, ops.ones_like(fixed), fixed)
    nonzero = ops.tensor_scatter_mul(ops.ones_like(whole), where.reshape((-1, 1)), safe)
    alone = zeros[where] - absent.astype(whole.dtype) == 0
    others = ops.where(alone, nonzero[where] / safe, ops.zeros_like(fixed))
    # what is not finite takes no part in the gradient, or 0 * inf would spoil the value
    none = ops.zeros_like(fixed)
    step = ops.where(ops.isfinite(fixed), factors, none) - ops.where(
        ops.isfinite(fixed), fixed, none
    )
    others = ops.where(ops.isfinite(others), others, none)
    return whole + add_at(ops.zeros_like(whole), where, others * step)


def put(input, index, source, accumulate=False):
    """torch.put: ``source`` at places of ``input`` seen as one row; repeated ones may add up."""
    flat = input.reshape((-1,))
    if index.size == 0:
        return ops.deepcopy(input)
    places = index.reshape((-1,)).astype(ms.int64) % flat.shape[0]
    values = source.reshape((-1,)).astype(input.dtype)
    if accumulate:
        return add_at(flat, places, values).reshape(input.shape)
    return ops.tensor_scatter_elements(flat, places, values, 0).reshape(input.shape)
