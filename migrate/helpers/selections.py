"""In: tensors that a mask selected. Out: torch's reductions of them, also of no elements at all.

MindSpore's own reductions of no elements give whatever lies in memory. The branch on ``size``
compiles where a shape is known only at run time, and no gradient flows through the garbage.
"""

from mindspore import ops


def sum_selected(input, dim=None, keepdim=False, *, dtype=None):
    """torch.sum: the sum of nothing is 0."""
    total = ops.sum(input, dim, keepdim, dtype=dtype)
    return total if input.size > 0 else ops.zeros_like(total)


def mean_selected(input, dim=None, keepdim=False, *, dtype=None):
    """torch.mean: the mean of nothing is NaN."""
    input = input if dtype is None else input.astype(dtype)
    total = ops.mean(input, dim, keepdim)
    return total if input.size > 0 else ops.full_like(total, float("nan"))


def prod_selected(input, dim=None, keepdim=False, *, dtype=None):
    """torch.prod: the product of nothing is 1."""
    total = ops.prod(input, dim, keepdim, dtype)
    return total if input.size > 0 else ops.ones_like(total)


def any_of(input, dim=None, keepdim=False):
    """torch.any: nothing is true in nothing."""
    found = ops.any(input != 0, dim, keepdim)  # of numbers MindSpore's own is wrong
    return found if input.size > 0 else ops.zeros_like(found)


def all_selected(input, dim=None, keepdim=False):
    """torch.all: everything is true in nothing."""
    found = ops.all(input, dim, keepdim)
    return found if input.size > 0 else ops.ones_like(found)


def loss_selected(loss, input, reduction):
    """A reduced ``loss`` of ``input``: of no elements NaN for "mean", 0 for "sum"."""
    if reduction == "none":
        return loss
    none = ops.full_like(loss, float("nan") if reduction == "mean" else 0.0)
    return loss if input.size > 0 else none


def cross_entropy_selected(
    input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    """torch.nn.functional.cross_entropy, also of no samples."""
    loss = ops.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    return loss_selected(loss, input, reduction)


def nll_loss_selected(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """torch.nn.functional.nll_loss, also of no samples."""
    loss = ops.nll_loss(input, target, weight, ignore_index, reduction)
    return loss_selected(loss, input, reduction)


def mse_loss_selected(input, target, reduction="mean"):
    """torch.nn.functional.mse_loss, also of no elements."""
    return loss_selected(ops.mse_loss(input, target, reduction), input, reduction)


def smooth_l1_loss_selected(input, target, beta=1.0, reduction="mean"):
    """torch.nn.functional.smooth_l1_loss, also of no elements."""
    return loss_selected(ops.smooth_l1_loss(input, target, beta, reduction), input, reduction)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """torch.nn.functional.huber_loss, also of no elements."""
    return loss_selected(ops.huber_loss(input, target, reduction, delta), input, reduction)
