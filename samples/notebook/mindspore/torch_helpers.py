# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import nn, ops


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


def softmax_over(input, dim, dtype=None):
    """torch.softmax along ``dim``, without MindSpore's kernel where that has one element.

    MindSpore 2.10 in PyNative: when the first softmax that a process differentiates goes over an
    axis of one element, all later gradients of softmax for that rank and axis are wrong.
    """
    x = input if dtype is None else input.astype(dtype)
    return ops.exp(x - x) if x.ndim == 0 or x.shape[dim] == 1 else ops.softmax(x, dim)
