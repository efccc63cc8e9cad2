# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import nn, ops


class LeakyReLU(nn.LeakyReLU):
    """Reproduces torch.nn.LeakyReLU, with True as a slope of one; ``inplace`` has no effect.

    MindSpore's is a maximum: at zero its gradient is (1 + slope) / 2, torch's the slope.
    """

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__(negative_slope)
        self.negative_slope = float(negative_slope)

    def construct(self, x):
        return ops.where(x > 0, x, self.negative_slope * x)


def reduction_of(size_average, reduce, reduction):
    """The reduction that torch's two old arguments stand for, where one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def log_at_least(x):
    """log(x), but -100 where it is smaller."""
    return ops.maximum(ops.log(x), -100.0)


class BinaryEntropy(nn.Cell):
    """-t log(p) - (1 - t) log(1 - p) of probabilities p and targets t.

    The gradient of p is (p - t) / (p (1 - p)), with at least 1e-12 below the line, as torch's: it
    is finite where a sigmoid is exactly 0 or 1.
    """

    def construct(self, p, t):
        return -t * log_at_least(p) - (1 - t) * log_at_least(1 - p)

    def bprop(self, p, t, out, dout):
        slope = (p - t) / ops.maximum(p * (1 - p), 1e-12)
        return dout * slope, dout * (ops.log(1 - p) - ops.log(p))


def reduced_by(loss, reduction):
    """The loss of each element, their mean, or their sum; of no elements NaN or 0."""
    if loss.size == 0 and reduction != "none":
        return ops.full((), float("nan") if reduction == "mean" else 0.0, dtype=loss.dtype)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """torch.nn.functional.binary_cross_entropy of probabilities; logarithms stop at -100."""
    reduction = reduction_of(size_average, reduce, reduction)
    loss = BinaryEntropy()(input, target)
    return reduced_by(loss if weight is None else loss * weight, reduction)


def randn_like(
    input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """torch.randn_like: standard normal, in the shape and dtype of ``input``."""
    return ops.randn_like(input, dtype=dtype or input.dtype)


def check_zeros(name, padding_mode):
    """Raises ValueError for a padding mode that torch refuses in transposed convolutions."""
    if padding_mode != "zeros":
        raise ValueError(f"{name} pads with zeros only, not with padding_mode={padding_mode!r}")


def per_axis(value, axes):
    """The value for each of ``axes`` axes: a number stands for all, as in torch."""
    if not isinstance(value, (tuple, list)):
        return (value,) * axes
    return tuple(value) * axes if len(value) == 1 else tuple(value)


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
