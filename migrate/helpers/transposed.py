"""In: torch.nn's transposed convolution arguments. Out: Cells with exact output padding."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.convolution import per_axis


def grown_ends(padding, output_padding):
    """Flat (before, after) pads of a transposed convolution, and the zeros to add at each end.

    Output padding makes the end longer: it first takes back padding, then adds zeros.
    """
    pads, extra = (), ()
    for p, more in zip(padding, output_padding):
        pads += (p, max(p - more, 0))
        extra += (max(more - p, 0),)
    return pads, extra


def grown_length(length, kernel, stride, dilation, before, after):
    """The length that a transposed convolution makes of ``length``."""
    return (length - 1) * stride + dilation * (kernel - 1) + 1 - before - after


def check_zeros(name, padding_mode):
    """Raises ValueError for a padding mode that torch refuses in transposed convolutions."""
    if padding_mode != "zeros":
        raise ValueError(f"{name} pads with zeros only, not with padding_mode={padding_mode!r}")


class ConvTranspose1d(nn.Conv1dTranspose):
    """Reproduces torch.nn.ConvTranspose1d; the weight is (in, out / groups, 1, kernel).

    ``output_size`` is refused with a ValueError: give ``output_padding``.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        check_zeros("ConvTranspose1d", padding_mode)
        kernel, step, spread, pad, more = (
            per_axis(v, 1)[0] for v in (kernel_size, stride, dilation, padding, output_padding)
        )
        sizes = (in_channels, out_channels, kernel, step)
        rest = {"dilation": spread, "group": groups, "has_bias": bool(bias)}
        super().__init__(*sizes, "valid", 0, dtype=dtype or ms.float32, **rest)
        self.groups, self.padding, self.output_padding = groups, (pad,), (more,)
        self.pads, self.extra = grown_ends((pad,), (more,))
        self.conv2d_transpose = ops.Conv2DTranspose(
            in_channels,
            (1, kernel),
            pad_mode="pad",
            pad=(0, 0, *self.pads),
            stride=(1, step),
            dilation=(1, spread),
            group=groups,
        )

    def construct(self, x, output_size=None):
        if output_size is not None:
            raise ValueError("ConvTranspose1d: give output_padding, not output_size")
        images = (x if x.ndim == 3 else x.expand_dims(0)).expand_dims(2)
        width = grown_length(
            x.shape[-1],
            self.kernel_size[1],
            self.stride[1],
            self.dilation[1],
            self.pads[0],
            self.pads[1],
        )
        out = self.conv2d_transpose(
            images, self.weight, (images.shape[0], self.out_channels, 1, width)
        ).squeeze(2)
        if self.extra[0] > 0:
            out = ops.pad(out, (0, self.extra[0]))
        if self.has_bias:
            out = out + self.bias.reshape((1, -1, 1))
        return out if x.ndim == 3 else out.squeeze(0)


class ConvTranspose2d(nn.Conv2dTranspose):
    """Reproduces torch.nn.ConvTranspose2d, output padding and unbatched images included.

    ``output_size`` is refused with a ValueError: give ``output_padding``.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        check_zeros("ConvTranspose2d", padding_mode)
        kernel, step, spread, pad, more = (
            per_axis(v, 2) for v in (kernel_size, stride, dilation, padding, output_padding)
        )
        pads, self_extra = grown_ends(pad, more)
        sizes = (in_channels, out_channels, kernel, step)
        rest = {"dilation": spread, "group": groups, "has_bias": bool(bias)}
        super().__init__(*sizes, "pad", pads, 0, dtype=dtype or ms.float32, **rest)
        self.groups, self.padding, self.output_padding = groups, pad, more
        self.pads, self.extra = pads, self_extra

    def construct(self, x, output_size=None):
        if output_size is not None:
            raise ValueError("ConvTranspose2d: give output_padding, not output_size")
        images = x if x.ndim == 4 else x.expand_dims(0)
        height = grown_length(
            x.shape[-2],
            self.kernel_size[0],
            self.stride[0],
            self.dilation[0],
            self.pads[0],
            self.pads[1],
        )
        width = grown_length(
            x.shape[-1],
            self.kernel_size[1],
            self.stride[1],
            self.dilation[1],
            self.pads[2],
            self.pads[3],
        )
        out = self.conv2d_transpose(
            images, self.weight, (images.shape[0], self.out_channels, height, width)
        )
        if self.extra[0] > 0 or self.extra[1] > 0:
            out = ops.pad(out, (0, self.extra[1], 0, self.extra[0]))
        if self.has_bias:
            out = self.bias_add(out, self.bias)
        return out if x.ndim == 4 else out.squeeze(0)


class ConvTranspose3d(nn.Conv3dTranspose):
    """Reproduces torch.nn.ConvTranspose3d, unbatched volumes included.

    ``output_size`` is refused with a ValueError: give ``output_padding``.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        check_zeros("ConvTranspose3d", padding_mode)
        kernel, step, spread, pad, more = (
            per_axis(v, 3) for v in (kernel_size, stride, dilation, padding, output_padding)
        )
        super().__init__(
            in_channels,
            out_channels,
            kernel,
            step,
            "pad",
            tuple(p for n in pad for p in (n, n)),
            spread,
            groups,
            more,
            bool(bias),
            dtype=dtype or ms.float32,
        )
        self.groups, self.padding, self.output_padding = groups, pad, more

    def construct(self, x, output_size=None):
        if output_size is not None:
            raise ValueError("ConvTranspose3d: give output_padding, not output_size")
        images = x if x.ndim == 5 else x.expand_dims(0)
        out = nn.Conv3dTranspose.construct(self, images)  # super() never ends in a graph
        return out if x.ndim == 5 else out.squeeze(0)
