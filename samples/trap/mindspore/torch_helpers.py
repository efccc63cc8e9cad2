# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import nn, ops


def per_axis(value, axes):
    """The value for each of ``axes`` axes: a number stands for all, as in torch."""
    if not isinstance(value, (tuple, list)):
        return (value,) * axes
    return tuple(value) * axes if len(value) == 1 else tuple(value)


def conv_pads(padding, kernel_size, dilation, axes):
    """(before, after) of each axis, flat, for torch's padding: a number, one an axis, or a name."""
    if padding == "valid":
        return (0,) * (2 * axes)
    if padding == "same":
        sizes = zip(per_axis(kernel_size, axes), per_axis(dilation, axes))
        totals = [d * (k - 1) for k, d in sizes]
        return tuple(p for t in totals for p in (t // 2, t - t // 2))
    return tuple(p for n in per_axis(padding, axes) for p in (n, n))


def reflect_volume(x, pairs):
    """Pads the last three axes by reflection; the kernel takes two, so depth goes by itself."""
    depth, height, width = pairs
    planes = x.reshape((1, -1, *x.shape[-2:]))
    planes = ops.pad(planes, tuple(width) + tuple(height), "reflect")
    size = planes.shape[-2:]
    rows = planes.reshape((1, -1, x.shape[-3], size[0] * size[1]))
    rows = ops.pad(rows, (0, 0, *tuple(depth)), "reflect")
    return rows.reshape((*x.shape[:-3], rows.shape[2], *size))


def wrap_images(x, pairs):
    """Pads the last len(pairs) axes of x circularly, any (before, after) up to the size."""
    first = x.ndim - len(pairs)
    for i in range(len(pairs)):
        before, after = pairs[i]
        size = x.shape[first + i]
        parts = [x]
        if before > 0:
            parts = [x.narrow(first + i, size - before, before), *parts]
        if after > 0:
            parts = [*parts, x.narrow(first + i, 0, after)]
        x = ops.cat(parts, first + i) if len(parts) > 1 else x
    return x


def pad_images(x, pads, mode):
    """Pads the last axes of x by (before, after) of each axis, in torch's mode; 0 is no work."""
    if not any(pads):
        return x
    pairs = [pads[i : i + 2] for i in range(0, len(pads), 2)]
    flat = ()
    for pair in pairs[::-1]:
        flat = flat + tuple(pair)
    if mode == "reflect" and len(pairs) == 3:
        return reflect_volume(x, pairs)
    if mode == "reflect" or mode == "replicate":
        return ops.pad(x, flat, mode)
    return wrap_images(x, pairs)


class Conv2d(nn.Conv2d):
    """Reproduces torch.nn.Conv2d exactly, for any padding, padding mode and unbatched images."""

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
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        kernel, step, spread = (per_axis(v, 2) for v in (kernel_size, stride, dilation))
        pads = conv_pads(padding, kernel, spread, 2)
        super().__init__(
            in_channels,
            out_channels,
            kernel,
            step,
            "pad",
            pads if padding_mode == "zeros" else 0,
            spread,
            groups,
            bool(bias),
            dtype=dtype or ms.float32,
        )
        self.groups, self.padding_mode, self.pads = groups, padding_mode, pads
        self.padding = padding if isinstance(padding, str) else per_axis(padding, 2)

    def _conv_forward(self, x, weight, bias):
        if self.padding_mode != "zeros":
            x = pad_images(x, self.pads, self.padding_mode)
        out = self.conv2d(x, weight)
        return out if bias is None else self.bias_add(out, bias)

    def construct(self, x):
        if x.ndim == 3:
            return self._conv_forward(x.expand_dims(0), self.weight, self.bias).squeeze(0)
        return self._conv_forward(x, self.weight, self.bias)


def gelu(input, *, approximate="none"):
    """torch.nn.functional.gelu: by erf, or by tanh with approximate='tanh'."""
    return ops.gelu(input, approximate)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """torch.nn.functional.leaky_relu; at zero, too, the gradient is ``negative_slope``."""
    return ops.where(input > 0, input, negative_slope * input)


def strided(input, dim, start=None, stop=None, step=1):
    """``input[..., start:stop:step, ...]`` along ``dim``, with a positive or negative ``step``.

    MindSpore's CPU kernel for the gradient of a slice fails where the step is not one and more
    axes follow; a selection by index has a gradient everywhere.
    """
    axis = dim + input.ndim if dim < 0 else dim
    places = list(range(input.shape[axis])[slice(start, stop, step)])
    return input.index_select(axis, ms.Tensor(places, ms.int64))
