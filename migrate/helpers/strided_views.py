"""In: a tensor, sizes and strides. Out: the elements that torch's view by strides shows."""

import mindspore as ms
from mindspore import ops


def strided_places(input, size, stride, storage_offset):
    """The place of every element of the view in ``input`` laid out row by row, int64.

    Raises ValueError where ``input`` is itself a view of another tensor: torch counts in the
    memory of that one. This can be asked in PyNative only.
    """
    if not input.is_contiguous() or input.storage_offset() != 0:
        raise ValueError("as_strided: the input is a view of another tensor; copy it first")
    places = ops.full((), storage_offset or 0, dtype=ms.int64)
    for length, step in zip(size, stride):
        places = places.unsqueeze(-1) + ops.arange(length) * step
    return places


def as_strided(input, size, stride, storage_offset=None):
    """torch.as_strided as a new tensor. PyNative only, see ``strided_places``."""
    places = strided_places(input, size, stride, storage_offset)
    return input.reshape((-1,))[places.reshape((-1,))].reshape(places.shape)


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """torch.as_strided_scatter: ``input`` with ``src`` in the place of the view. PyNative only."""
    places = strided_places(input, size, stride, storage_offset).reshape((-1,))
    flat, values = input.reshape((-1,)), src.reshape((-1,)).astype(input.dtype)
    return ops.tensor_scatter_elements(flat, places, values, 0).reshape(input.shape)
