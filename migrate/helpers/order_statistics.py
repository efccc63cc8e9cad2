"""In: tensors. Out: torch's mode, medians and quantiles without NaN, and running extremes."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.reduction import argsort, kept_axis, shared_value, sort


def running_extreme(input, dim, largest):
    """torch.cummax and torch.cummin along ``dim``: (values, int64 indices)."""
    if input.ndim == 0:
        return ops.deepcopy(input), ops.zeros((), ms.int64)
    fixed = ops.stop_gradient(input)
    if input.dtype == ms.bool_:
        fixed = fixed.astype(ms.int32)
    indices = ops.cummax(fixed, dim)[1] if largest else ops.cummin(fixed, dim)[1]
    indices = indices.astype(ms.int64)
    return ops.gather_elements(input, dim, indices), indices


def cummax(input, dim):
    """torch.cummax along ``dim``: (values, int64 indices)."""
    return running_extreme(input, dim, True)


def cummin(input, dim):
    """torch.cummin along ``dim``: (values, int64 indices)."""
    return running_extreme(input, dim, False)


def taken_along(input, places, dim, keepdim):
    """The elements of ``input`` at one of ``places`` along ``dim`` each, and these places."""
    values = ops.gather_elements(input, dim, places)
    if keepdim:
        return values, places
    return values.squeeze(dim), places.squeeze(dim)


def mode(input, dim=-1, keepdim=False):
    """torch.mode: (smallest of the most frequent values along ``dim``, its last place)."""
    if input.ndim == 0:
        return ops.deepcopy(input), ops.zeros((), ms.int64)
    fixed = ops.stop_gradient(input)
    if input.dtype == ms.bool_:
        fixed = fixed.astype(ms.int32)
    values, order = sort(fixed.swapaxes(dim, -1))
    first = ops.ones((*values.shape[:-1], 1), ms.bool_)
    new = ops.cat((first, values[..., 1:] != values[..., :-1]), -1)
    at = ops.arange(values.shape[-1]).astype(ms.float32)
    begun = ops.cummax(ops.where(new, at, ops.zeros_like(at)), -1)[0]
    longest = (at - begun).argmax(-1).unsqueeze(-1)
    places = ops.gather_elements(order, -1, longest).swapaxes(dim, -1)
    return taken_along(input, places, dim, keepdim)


def sorted_numbers(input):
    """(order along the last axis with NaN at its end, int64; how many are no NaN, kept axis)."""
    absent = ops.isnan(input)
    return argsort(input), ops.logical_not(absent).astype(ms.int64).sum(-1, keepdims=True)


def nanmedian_of(input, dim, keepdim=False):
    """torch.nanmedian along ``dim``: (lower median of what is no NaN, its int64 index)."""
    if input.ndim == 0:
        return ops.deepcopy(input), ops.zeros((), ms.int64)
    order, count = sorted_numbers(ops.stop_gradient(input).swapaxes(dim, -1))
    middle = ops.where(count > 0, ops.floor_divide(count - 1, 2), ops.zeros_like(count))
    places = ops.gather_elements(order, -1, middle).swapaxes(dim, -1)
    return taken_along(input, places, dim, keepdim)


def nanmedian(input):
    """torch.nanmedian of all elements that are no NaN, 0-d."""
    return shared_value(input, nanmedian_of(input.reshape((-1,)), 0)[0])


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """torch.nanquantile of one ``q`` or a 1-d tensor of them, over what is no NaN."""
    axis = 0 if dim is None else dim % max(input.ndim, 1)
    data = input.reshape((-1,)) if dim is None or input.ndim == 0 else input.swapaxes(axis, -1)
    order, count = sorted_numbers(ops.stop_gradient(data))
    data = ops.gather_elements(data, -1, order)
    levels = q if isinstance(q, ms.Tensor) else ms.tensor(q, input.dtype)
    last = ops.where(count > 0, count - 1, ops.zeros_like(count)).astype(input.dtype)
    place = last * levels.reshape((-1,))
    if interpolation == "nearest":
        place = ops.round(place)
    low, high = ops.floor(place), ops.ceil(place)
    if interpolation == "lower":
        high = low
    if interpolation == "higher":
        low = high
    below = ops.gather_elements(data, -1, low.astype(ms.int64))
    above = ops.gather_elements(data, -1, high.astype(ms.int64))
    weight = 0.5 if interpolation == "midpoint" else place - low
    found = below + (above - below) * weight
    if dim is None or input.ndim == 0:
        result = found.reshape((-1,) + (1,) * input.ndim) if keepdim else found
    else:
        result = kept_axis(found, axis, keepdim)
    return result if levels.ndim > 0 else result.squeeze(0)
