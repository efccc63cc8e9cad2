"""In: a tensor and a slice with a step. Out: the same elements, with a gradient on every device."""

import mindspore as ms
import numpy as np
from mindspore import ops


def strided(input, dim, start=None, stop=None, step=1):
    """``input[..., start:stop:step, ...]`` along ``dim``, with a positive or negative ``step``.

    MindSpore's CPU kernel for the gradient of a slice fails where the step is not one and more
    axes follow; a selection by index has a gradient everywhere.
    """
    axis = dim + input.ndim if dim < 0 else dim
    places = list(range(input.shape[axis])[slice(start, stop, step)])
    return input.index_select(axis, ms.Tensor(places, ms.int64))


def set_where(input, index, value):
    """``input[index] = value`` as a new tensor, for an index that may be a mask of any size.

    Graph mode cannot set as many elements as only the mask tells: what is set is chosen instead.
    """
    if not isinstance(index, ms.Tensor) or index.dtype != ms.bool_:
        made = ops.deepcopy(input)
        made[index] = value
        return made
    inner = input.shape[index.ndim :]
    chosen = index.reshape(index.shape + (1,) * len(inner))
    if not isinstance(value, ms.Tensor):
        return ops.where(chosen, ops.full_like(input, value), input)
    value = value.astype(input.dtype)
    if value.ndim <= len(inner):
        return ops.where(chosen, value.broadcast_to(input.shape), input)
    # a row behind the last, so that there is one to look at where the mask chooses none
    rows = ops.cat((value.broadcast_to((-1, *inner)), ops.zeros((1, *inner), input.dtype)), 0)
    place = ops.cumsum(index.reshape((-1,)).astype(ms.int32), 0) - 1
    place = ops.maximum(ops.minimum(place, rows.shape[0] - 2), 0)
    return ops.where(chosen, ops.gather(rows, place, 0).reshape(input.shape), input)


def as_index(value):
    """What indexes a Tensor: arrays of numpy's are Tensors there, in a tuple as well."""
    if isinstance(value, tuple):
        return tuple(as_index(item) for item in value)
    return ms.Tensor(value) if isinstance(value, np.ndarray) else value
