"""In: torch.nn.functional's arguments of convolutions. Out: what torch makes of them."""

from mindspore import ops

from migrate.helpers.convolution import per_axis
from migrate.helpers.transposed import grown_ends, grown_length


def padding_of(padding, weight, dilation, axes):
    """Flat (before, after) pads for ops.pad, last axis first, and whether they are all zero."""
    if padding == "valid":
        return (0,) * (2 * axes)
    flat = ()
    spread = per_axis(dilation, axes)
    for axis in range(axes - 1, -1, -1):
        if padding == "same":
            total = spread[axis] * (weight.shape[axis + 2] - 1)
            flat = (*flat, total // 2, total - total // 2)
        else:
            each = per_axis(padding, axes)[axis]
            flat = (*flat, each, each)
    return flat


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """torch.nn.functional.conv1d: any padding, batched or not."""
    images = conv2d(
        input.unsqueeze(-2), weight.unsqueeze(2), bias, (1, *per_axis(stride, 1)),
        padding if isinstance(padding, str) else (0, *per_axis(padding, 1)),
        (1, *per_axis(dilation, 1)), groups,
    )  # fmt: skip
    return images.squeeze(-2)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """torch.nn.functional.conv2d: any padding, batched or not."""
    images = input if input.ndim == 4 else input.unsqueeze(0)
    if isinstance(padding, str):
        images = ops.pad(images, padding_of(padding, weight, dilation, 2))
        padding = 0
    result = ops.conv2d(
        images, weight, bias, per_axis(stride, 2), "pad", per_axis(padding, 2),
        per_axis(dilation, 2), groups,
    )  # fmt: skip
    return result if input.ndim == 4 else result.squeeze(0)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """torch.nn.functional.conv3d: any padding, batched or not."""
    volumes = input if input.ndim == 5 else input.unsqueeze(0)
    if isinstance(padding, str):
        volumes = ops.pad(volumes, padding_of(padding, weight, dilation, 3))
        padding = 0
    result = ops.conv3d(
        volumes, weight, bias, per_axis(stride, 3), "pad", per_axis(padding, 3),
        per_axis(dilation, 3), groups,
    )  # fmt: skip
    return result if input.ndim == 5 else result.squeeze(0)


def conv_transpose1d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """torch.nn.functional.conv_transpose1d, output padding included, batched or not."""
    images = conv_transpose2d(
        input.unsqueeze(-2), weight.unsqueeze(2), bias, (1, *per_axis(stride, 1)),
        (0, *per_axis(padding, 1)), (0, *per_axis(output_padding, 1)), groups,
        (1, *per_axis(dilation, 1)),
    )  # fmt: skip
    return images.squeeze(-2)


def conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """torch.nn.functional.conv_transpose2d, output padding included, batched or not."""
    images = input if input.ndim == 4 else input.unsqueeze(0)
    step, spread = per_axis(stride, 2), per_axis(dilation, 2)
    pads, extra = grown_ends(per_axis(padding, 2), per_axis(output_padding, 2))
    kernel = tuple(weight.shape[2:])
    height = grown_length(images.shape[2], kernel[0], step[0], spread[0], pads[0], pads[1])
    width = grown_length(images.shape[3], kernel[1], step[1], spread[1], pads[2], pads[3])
    transposed = ops.Conv2DTranspose(
        weight.shape[0],
        kernel,
        pad_mode="pad",
        pad=pads,
        stride=step,
        dilation=spread,
        group=groups,
    )
    out_channels = weight.shape[1] * groups
    result = transposed(images, weight, (images.shape[0], out_channels, height, width))
    if extra[0] > 0 or extra[1] > 0:
        result = ops.pad(result, (0, extra[1], 0, extra[0]))
    if bias is not None:
        result = result + bias.reshape((1, -1, 1, 1))
    return result if input.ndim == 4 else result.squeeze(0)


def conv_transpose3d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """torch.nn.functional.conv_transpose3d, output padding included, batched or not."""
    volumes = input if input.ndim == 5 else input.unsqueeze(0)
    pads, more = per_axis(padding, 3), per_axis(output_padding, 3)
    step, spread = per_axis(stride, 3), per_axis(dilation, 3)
    if groups == 1:
        result = transposed_volumes(volumes, weight, pads, more, step, spread)
    else:  # the kernel has one group alone
        parts = zip(ops.chunk(volumes, groups, 1), ops.chunk(weight, groups, 0))
        done = [transposed_volumes(v, w, pads, more, step, spread) for v, w in parts]
        result = ops.cat(done, 1)
    if bias is not None:
        result = result + bias.reshape((1, -1, 1, 1, 1))
    return result if input.ndim == 5 else result.squeeze(0)


def transposed_volumes(volumes, weight, pads, more, step, spread):
    """The transposed convolution of one group, without bias."""
    if spread == (1, 1, 1):
        return ops.conv3d_transpose(
            volumes, weight, "pad", (pads[0], pads[0], pads[1], pads[1], pads[2], pads[2]),
            step, 1, 1, more,
        )  # fmt: skip
    # the kernel takes no dilation: zeros between the elements, then a plain convolution
    reach = tuple([d * (k - 1) for d, k in zip(spread, weight.shape[2:])])
    whole = ops.conv3d(spread_out(volumes, step), turned(weight, 1), None, 1, "pad", reach, spread)
    return cropped(whole, pads, more)


def spread_out(x, steps):
    """x with steps - 1 zeros between its elements along each of the last axes."""
    first = x.ndim - len(steps)
    for i in range(len(steps)):
        gap, axis = steps[i] - 1, first + i
        if gap > 0:
            length = (x.shape[axis] - 1) * steps[i] + 1
            zeros = ops.zeros((*x.shape[: axis + 1], gap, *x.shape[axis + 1 :]), x.dtype)
            long = (*x.shape[:axis], -1, *x.shape[axis + 1 :])
            x = ops.cat((x.unsqueeze(axis + 1), zeros), axis + 1).reshape(long)
            x = x.narrow(axis, 0, length)
    return x


def turned(weight, groups):
    """A transposed convolution's weight as a convolution's: channels swapped, axes reversed."""
    sizes = tuple(weight.shape[2:])
    split = weight.reshape((groups, -1, weight.shape[1], *sizes)).swapaxes(1, 2)
    return ops.flip(split.reshape((groups * weight.shape[1], -1, *sizes)), (2, 3, 4))


def cropped(x, pads, more):
    """x without ``pads`` at both ends of the last axes, with ``more`` given back at the end."""
    first = x.ndim - len(pads)
    for i in range(len(pads)):
        length = x.shape[first + i] - 2 * pads[i] + more[i]
        if more[i] > pads[i]:
            shape = (*x.shape[: first + i], more[i] - pads[i], *x.shape[first + i + 1 :])
            x = ops.cat((x, ops.zeros(shape, x.dtype)), first + i)
        x = x.narrow(first + i, pads[i], length)
    return x
