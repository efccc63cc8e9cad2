"""In: torch.nn.functional.pad's arguments. Out: the padded or cropped tensor."""

import mindspore as ms
from mindspore import ops


def pad(input, pad, mode="constant", value=None):
    """torch.nn.functional.pad: (before, after) pairs, last axis first; negative ones cut.

    Any number of axes in every mode, where ops.pad takes three.
    """
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        if mode != "constant" and (before != 0 or after != 0):
            input = pad_from_inside(input, input.ndim - 1 - i, before, after, mode)
    return pad_with(input, pad, 0 if value is None else value) if mode == "constant" else input


def pad_with(input, pad, value):
    """The input with ``value`` around it.

    Negative pads are cut by slicing: with them ops.pad is wrong on CPU from its second call on.
    """
    shape = padded_shape(input.shape, pad)
    ends, left = (), input.size
    for i in range(len(pad) // 2):
        before, after, axis = pad[2 * i], pad[2 * i + 1], input.ndim - 1 - i
        length = input.shape[axis] + min(before, 0) + min(after, 0)
        left = left if length > 0 else 0
        if 0 < length < input.shape[axis]:
            input = ops.narrow(input, axis, max(-before, 0), length)
        ends = (*ends, max(before, 0), max(after, 0))
    if left == 0:
        return ops.full(shape, value, dtype=input.dtype)
    return ops.pad(input, ends, "constant", value) if max((0, *ends)) > 0 else input


def padded_shape(shape, pad):
    """``shape`` with its last axes longer by the (before, after) pairs of ``pad``."""
    whole = tuple(shape[: len(shape) - len(pad) // 2])
    for i in range(len(pad) // 2 - 1, -1, -1):
        whole = (*whole, shape[len(shape) - 1 - i] + pad[2 * i] + pad[2 * i + 1])
    return whole


def pad_from_inside(input, axis, before, after, mode):
    """The input longer along ``axis`` by elements of its own: the edge, mirrored or wrapped."""
    size = input.shape[axis]
    if input.size == 0:
        grown = (*input.shape[:axis], size + before + after, *input.shape[axis + 1 :])
        return ops.zeros(grown, input.dtype)
    places = ops.arange(-before, size + after)
    if mode == "replicate":
        places = ops.clamp(places, 0, size - 1)
    elif mode == "reflect":
        places = size - 1 - ops.abs(size - 1 - ops.abs(places))
    else:
        # what is cut is cut first, then the rest goes round
        start, end = max(-before, 0), size - max(-after, 0)
        places = start + (places - start) % (end - start)
    return input.index_select(axis, places.astype(ms.int64))
