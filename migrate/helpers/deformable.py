"""In: maps, offsets and weights. Out: what torchvision's deformable convolution gives."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Uniform, initializer

from migrate.helpers.convolution import per_axis


def sample_places(count, kernel, stride, padding, dilation):
    """Where a convolution looks along one axis: (kernel, count), in pixels."""
    places = ops.arange(count).reshape((1, -1)) * stride - padding
    return places + ops.arange(kernel).reshape((-1, 1)) * dilation


def deform_conv2d(
    input, offset, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), mask=None
):
    """torchvision.ops.deform_conv2d: (N, C, H, W) with offsets (N, 2 * G * kh * kw, P, Q), y first,
    and a mask (N, G * kh * kw, P, Q) to (N, O, P, Q). Pixels outside count as 0."""
    stride, padding, dilation = per_axis(stride, 2), per_axis(padding, 2), per_axis(dilation, 2)
    count, channels, height, width = input.shape
    out_channels, of_group, tall, wide = weight.shape
    taps, (high, across) = tall * wide, offset.shape[2:]
    groups = offset.shape[1] // (2 * taps)
    if groups == 0 or offset.shape[1] != groups * 2 * taps or channels % groups:
        raise ValueError(f"deform_conv2d: offsets {offset.shape} for a kernel {weight.shape}")
    y = sample_places(high, tall, stride[0], padding[0], dilation[0])
    x = sample_places(across, wide, stride[1], padding[1], dilation[1])
    moved = offset.reshape((count * groups, tall, wide, 2, high, across))
    y = moved[:, :, :, 0] + y.reshape((1, tall, 1, high, 1)).astype(offset.dtype)
    x = moved[:, :, :, 1] + x.reshape((1, 1, wide, 1, across)).astype(offset.dtype)
    # grid_sample counts from -1 to 1 over the whole map
    grid = ops.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1)
    grid = grid.reshape((count * groups, taps * high, across, 2))
    maps = input.reshape((count * groups, channels // groups, height, width))
    taken = ops.grid_sample(maps, grid, "bilinear", "zeros", False)
    taken = taken.reshape((count, groups, channels // groups, taps, high * across))
    if mask is not None:
        taken = taken * mask.reshape((count, groups, 1, taps, high * across))
    parts = channels // of_group
    taken = taken.reshape((count, parts, of_group * taps, high * across))
    out = ops.matmul(weight.reshape((parts, out_channels // parts, of_group * taps)), taken)
    out = out.reshape((count, out_channels, high, across))
    return out if bias is None else out + bias.reshape((1, -1, 1, 1))


class DeformConv2d(nn.Cell):
    """torchvision.ops.DeformConv2d: deform_conv2d with weights of its own."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
    ):
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"DeformConv2d: {in_channels} to {out_channels} channels in {groups} groups"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = per_axis(kernel_size, 2), per_axis(stride, 2)
        self.padding, self.dilation = per_axis(padding, 2), per_axis(dilation, 2)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        self.weight = ms.Parameter(initializer(Uniform(bound), shape))
        self.bias = ms.Parameter(initializer(Uniform(bound), (out_channels,))) if bias else None

    def construct(self, input, offset, mask=None):
        return deform_conv2d(
            input,
            offset,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            mask,
        )
