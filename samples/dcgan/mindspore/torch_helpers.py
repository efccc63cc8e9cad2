# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import nn, ops


def tanh_of(x):
    """tanh from half the angle, 2t / (1 + t * t): within 1.5e-7, gradient 1.9e-7.

    The kernel on CPU is off by 1e-4 where the result is near one, and exact to rounding below
    abs(x) = 2; the formula squares the distance to one, and with it the error.
    """
    half = ops.tanh(x / 2)
    return 2 * half / (1 + half * half)


class Tanh(nn.Tanh):
    """Reproduces torch.nn.Tanh."""

    def construct(self, x):
        return tanh_of(x)


class LeakyReLU(nn.LeakyReLU):
    """Reproduces torch.nn.LeakyReLU, with True as a slope of one; ``inplace`` has no effect.

    MindSpore's is a maximum: at zero its gradient is (1 + slope) / 2, torch's the slope.
    """

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__(negative_slope)
        self.negative_slope = float(negative_slope)

    def construct(self, x):
        return ops.where(x > 0, x, self.negative_slope * x)


class Device:
    """torch.device as a name: its ``type`` and ``index``. It places nothing."""

    def __init__(self, type, index=None):
        name, _, number = str(type).partition(":")
        self.type = name
        self.index = int(number) if number else index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"device({str(self)!r})"

    def __eq__(self, other):
        return isinstance(other, Device) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


def reduction_of(size_average, reduce, reduction):
    """The reduction that torch's two old arguments stand for, where one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def keep_buffer(cell, name, value):
    """Makes ``value`` a buffer of the cell, as torch does with weights; None stays None."""
    if name in cell.__dict__:
        delattr(cell, name)
    if value is None:
        setattr(cell, name, None)
    else:
        cell.register_buffer(name, value)


def softplus_of(x, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold."""
    scaled = x * beta
    linear = scaled > threshold
    curved = ops.log1p(ops.exp(ops.where(linear, ops.zeros_like(x), scaled))) / beta
    return ops.where(linear, x, curved)


def reduced_by(loss, reduction):
    """The loss of each element, their mean, or their sum; of no elements NaN or 0."""
    if loss.size == 0 and reduction != "none":
        return ops.full((), float("nan") if reduction == "mean" else 0.0, dtype=loss.dtype)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


class BCEWithLogitsLoss(nn.Cell):
    """Reproduces torch.nn.BCEWithLogitsLoss by its stable formula."""

    def __init__(
        self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
    ):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)
        keep_buffer(self, "weight", weight)
        keep_buffer(self, "pos_weight", pos_weight)

    def construct(self, logits, labels):
        tail = softplus_of(-logits)
        if self.pos_weight is not None:
            tail = tail * (1 + (self.pos_weight - 1) * labels)
        loss = (1 - labels) * logits + tail
        if self.weight is not None:
            loss = loss * self.weight
        return reduced_by(loss, self.reduction)


def assign(tensor, value):
    """Writes ``value``, broadcast and converted, into a Parameter or Tensor; returns it.

    What torch's in-place methods do to a Parameter or a buffer; no gradient is recorded for a
    Parameter. In place of a number the value itself is returned.
    """
    if not isinstance(tensor, ms.Tensor):
        return value
    value = value.astype(tensor.dtype)
    if tensor.ndim == 4 and value.ndim == 3 and value.shape == tensor.shape[:2] + tensor.shape[3:]:
        value = value.expand_dims(2)  # a Conv1d keeps one axis more
    value = value.broadcast_to(tensor.shape)
    if isinstance(tensor, ms.Parameter):
        ops.assign(tensor, ops.stop_gradient(value))
        return tensor
    return tensor.copy_(value)


def fill_(tensor, value):
    """torch.Tensor.fill_: every element becomes ``value``, a number or a tensor of no axes."""
    if isinstance(value, ms.Tensor):
        return assign(tensor, value)
    return assign(tensor, ops.full_like(tensor, value))


def draw_normal_(tensor, mean=0.0, std=1.0):
    """torch.Tensor.normal_: draws from N(mean, std^2)."""
    return assign(tensor, ops.randn(tensor.shape, dtype=ms.float32) * std + mean)
