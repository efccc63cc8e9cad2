"""In: arguments of torch.nn's losses. Out: loss Cells with its reductions; weights are buffers."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.activation import softplus_of
from migrate.helpers.loss_functional import (
    binary_cross_entropy,
    gaussian_nll_loss,
    kl_div,
    reduced_by,
    reduction_of,
)


class Loss(nn.Cell):
    """Reproduces torch.nn.modules.loss._Loss: the base of losses, which keeps the reduction."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)


def keep_buffer(cell, name, value):
    """Makes ``value`` a buffer of the cell, as torch does with weights; None stays None."""
    if name in cell.__dict__:
        delattr(cell, name)
    if value is None:
        setattr(cell, name, None)
    else:
        cell.register_buffer(name, value)


class WeightedLoss(Loss):
    """Reproduces torch.nn.modules.loss._WeightedLoss: a loss with a weight for each class."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        keep_buffer(self, "weight", weight)


def as_labels(target):
    """Class labels as int32, which the kernels want; probabilities stay."""
    return target.astype(ms.int32) if target.dtype in (ms.int64, ms.uint8) else target


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """Reproduces torch.nn.CrossEntropyLoss; labels may be int64, or class probabilities."""

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
        label_smoothing=0.0,
    ):
        super().__init__(
            None, ignore_index, reduction_of(size_average, reduce, reduction), label_smoothing
        )
        keep_buffer(self, "weight", weight)

    def construct(self, logits, labels):
        return ops.cross_entropy(
            logits,
            as_labels(labels),
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )


class NLLLoss(nn.NLLLoss):
    """Reproduces torch.nn.NLLLoss; labels may be int64."""

    def __init__(
        self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
    ):
        super().__init__(None, ignore_index, reduction_of(size_average, reduce, reduction))
        keep_buffer(self, "weight", weight)

    def construct(self, logits, labels):
        return ops.nll_loss(
            logits, as_labels(labels), self.weight, self.ignore_index, self.reduction
        )


class BCELoss(nn.BCELoss):
    """Reproduces torch.nn.BCELoss; the kernel's logarithms stop at -27.6, torch's at -100."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(None, reduction_of(size_average, reduce, reduction))
        keep_buffer(self, "weight", weight)

    def construct(self, logits, labels):
        return binary_cross_entropy(logits, labels, self.weight, reduction=self.reduction)


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


class MSELoss(nn.MSELoss):
    """Reproduces torch.nn.MSELoss."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(reduction_of(size_average, reduce, reduction))


class L1Loss(nn.L1Loss):
    """Reproduces torch.nn.L1Loss."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(reduction_of(size_average, reduce, reduction))


class SmoothL1Loss(nn.Cell):
    """Reproduces torch.nn.SmoothL1Loss; beta 0 is the L1 loss."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__()
        self.reduction, self.beta = reduction_of(size_average, reduce, reduction), beta

    def construct(self, logits, labels):
        distance = ops.abs(logits - labels)
        if self.beta == 0:
            return reduced_by(distance, self.reduction)
        near = 0.5 * distance * distance / self.beta
        loss = ops.where(distance < self.beta, near, distance - 0.5 * self.beta)
        return reduced_by(loss, self.reduction)


class HuberLoss(nn.HuberLoss):
    """Reproduces torch.nn.HuberLoss."""


class KLDivLoss(nn.Cell):
    """Reproduces torch.nn.KLDivLoss, log targets included; 0 * log 0 is 0."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)
        self.log_target = log_target

    def construct(self, logits, labels):
        return kl_div(logits, labels, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(nn.PoissonNLLLoss):
    """Reproduces torch.nn.PoissonNLLLoss."""

    def __init__(
        self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
    ):
        super().__init__(log_input, full, eps, reduction_of(size_average, reduce, reduction))


class GaussianNLLLoss(nn.Cell):
    """Reproduces torch.nn.GaussianNLLLoss for (mean, target, variance)."""

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__()
        self.full, self.eps, self.reduction = full, eps, reduction

    def construct(self, logits, labels, var):
        if isinstance(var, float):
            var = ops.full_like(logits, var)
        return gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)


class CTCLoss(nn.Cell):
    """Reproduces torch.nn.CTCLoss; as in torch, its gradient takes log_probs as log-softmax.

    ``log_probs`` is (T, N, C) or (T, C). ``targets`` is (N, S), or the sequences one after
    another; lengths may be tensors, lists or tuples.
    """

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def construct(self, log_probs, targets, input_lengths, target_lengths):
        single = log_probs.ndim == 2
        table = log_probs.expand_dims(1) if single else log_probs
        lengths = lengths_of(input_lengths, table.shape[1])
        sizes = lengths_of(target_lengths, table.shape[1])
        if targets.ndim == 1:
            targets = split_targets(targets, sizes)
        loss, _ = ops.ctc_loss(
            table, targets.astype(ms.int32), lengths, sizes, self.blank, "none", self.zero_infinity
        )
        if self.reduction == "mean":
            return (loss / ops.maximum(sizes, ops.ones_like(sizes)).astype(loss.dtype)).mean()
        if self.reduction == "sum":
            return loss.sum()
        return loss.squeeze(0) if single else loss


def lengths_of(lengths, count):
    """Lengths as an int32 tensor (count,)."""
    if isinstance(lengths, (tuple, list)):
        return ms.Tensor(lengths, ms.int32)
    return lengths.astype(ms.int32).reshape(count)


def split_targets(targets, sizes):
    """Sequences one after another as rows (N, length of all); places beyond a size are junk."""
    ends = ops.cumsum(sizes, 0)
    places = (ends - sizes).expand_dims(1) + ops.arange(targets.shape[0]).astype(ms.int32)
    places = ops.minimum(places, ops.full_like(places, targets.shape[0] - 1))
    return ops.gather(targets, places, 0)
