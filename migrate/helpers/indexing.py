"""In: a tensor and a slice with a step. Out: the same elements, with a gradient on every device."""

import mindspore as ms


def strided(input, dim, start=None, stop=None, step=1):
    """``input[..., start:stop:step, ...]`` along ``dim``, with a positive or negative ``step``.

    MindSpore's CPU kernel for the gradient of a slice fails where the step is not one and more
    axes follow; a selection by index has a gradient everywhere.
    """
    axis = dim + input.ndim if dim < 0 else dim
    places = list(range(input.shape[axis])[slice(start, stop, step)])
    return input.index_select(axis, ms.Tensor(places, ms.int64))
