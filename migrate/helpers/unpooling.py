"""In: pooled values and the places they came from. Out: torch.nn.functional's max_unpool."""

import math

from mindspore import ops

from migrate.helpers.convolution import per_axis


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """torch.nn.functional.max_unpool1d of (N, C, L) or (C, L)."""
    return unpooled(input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """torch.nn.functional.max_unpool2d of (N, C, H, W) or (C, H, W)."""
    return unpooled(input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """torch.nn.functional.max_unpool3d of (N, C, D, H, W) or (C, D, H, W)."""
    return unpooled(input, indices, kernel_size, stride, padding, output_size, 3)


def unpooled(input, indices, kernel_size, stride, padding, output_size, axes):
    """The values at their places in each channel, zeros elsewhere."""
    kernel, pads = per_axis(kernel_size, axes), per_axis(padding, axes)
    steps = kernel if stride is None else per_axis(stride, axes)
    size, count = (), 1
    for i in range(axes):
        length = (input.shape[i - axes] - 1) * steps[i] + kernel[i] - 2 * pads[i]
        length = length if output_size is None else output_size[len(output_size) - axes + i]
        size, count = (*size, length), count * length
    shape = (*input.shape[: input.ndim - axes], *size)
    if input.size == 0:
        return ops.zeros(shape, input.dtype)
    rows = input.reshape((math.prod(shape[: input.ndim - axes]), -1))
    empty = ops.zeros((rows.shape[0], count), input.dtype)
    filled = ops.tensor_scatter_elements(empty, indices.reshape(rows.shape), rows, 1)
    return filled.reshape(shape)
