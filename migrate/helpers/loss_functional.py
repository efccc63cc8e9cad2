"""In: predictions and targets. Out: torch.nn.functional's losses where MindSpore's differ."""

from mindspore import nn, ops

from migrate.helpers.complex_numbers import absolute
from migrate.helpers.elementwise import xlogy


def reduction_of(size_average, reduce, reduction):
    """The reduction that torch's two old arguments stand for, where one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def reduction_number(reduction):
    """torch.nn.functional._Reduction.get_enum: the number of a reduction in torch's own code."""
    return {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}[reduction]


def reduced_by(loss, reduction):
    """The loss of each element, their mean, or their sum; of no elements NaN or 0."""
    if loss.size == 0 and reduction != "none":
        return ops.full((), float("nan") if reduction == "mean" else 0.0, dtype=loss.dtype)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """torch.nn.functional.kl_div of log-probabilities; also differentiable by the target."""
    reduction = reduction_of(size_average, reduce, reduction)
    if log_target:
        loss = ops.exp(target) * (target - input)
    else:
        loss = xlogy(target, target) - target * input
    if reduction == "batchmean" and loss.ndim > 0:
        return reduced_by(loss, "sum") / input.shape[0]
    return reduced_by(loss, "none" if reduction == "batchmean" else reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """torch.nn.functional.soft_margin_loss: log(1 + exp(-target * input))."""
    reduction = reduction_of(size_average, reduce, reduction)
    return reduced_by(ops.softplus(-target * input), reduction)


def positive_part(x):
    """max(x, 0) with the gradient 1 at zero, as torch's clamp_min; that of relu is 0 there."""
    return ops.where(x < 0, 0.0, x)


def margin_ranking_loss(
    input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"
):
    """torch.nn.functional.margin_ranking_loss: max(-target * (input1 - input2) + margin, 0)."""
    reduction = reduction_of(size_average, reduce, reduction)
    return reduced_by(positive_part(-target * (input1 - input2) + margin), reduction)


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
    reduction="mean",
):  # fmt: skip
    """torch.nn.functional.poisson_nll_loss, with Stirling's approximation where ``full``."""
    reduction = reduction_of(size_average, reduce, reduction)
    loss = ops.exp(input) - target * input if log_input else input - target * ops.log(input + eps)
    if full:
        large = ops.where(target > 1, target, ops.ones_like(target))
        term = large * ops.log(large) - large + 0.5 * ops.log(6.283185307179586 * large)
        loss = loss + ops.where(target > 1, term, ops.zeros_like(term))
    return reduced_by(loss, reduction)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
    reduce=None, reduction="mean",
):  # fmt: skip
    """torch.nn.functional.triplet_margin_loss of p-norm distances."""
    reduction = reduction_of(size_average, reduce, reduction)
    near = distance(anchor, positive, p, eps)
    far = distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, distance(positive, negative, p, eps))
    return reduced_by(positive_part(near - far + margin), reduction)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
    reduction="mean",
):  # fmt: skip
    """torch.nn.functional.triplet_margin_with_distance_loss; 2-norms without a function."""
    if distance_function is None:
        near, far = distance(anchor, positive, 2, 1e-6), distance(anchor, negative, 2, 1e-6)
    else:
        near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap and distance_function is None:
        far = ops.minimum(far, distance(positive, negative, 2, 1e-6))
    elif swap:
        far = ops.minimum(far, distance_function(positive, negative))
    return reduced_by(positive_part(near - far + margin), reduction)


def distance(x, y, p, eps):
    """The p-norm of x - y + eps along the last axis, as torch's pairwise_distance."""
    return ops.pow(ops.pow(ops.abs(x - y + eps), p).sum(-1), 1.0 / p)


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """torch.nn.functional.binary_cross_entropy of probabilities; logarithms stop at -100."""
    reduction = reduction_of(size_average, reduce, reduction)
    loss = BinaryEntropy()(input, target)
    return reduced_by(loss if weight is None else loss * weight, reduction)


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


def log_at_least(x):
    """log(x), but -100 where it is smaller."""
    return ops.maximum(ops.log(x), -100.0)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """torch.nn.functional.mse_loss, with an optional weight of each element."""
    reduction = reduction_of(size_average, reduce, reduction)
    loss = ops.square(input - target)
    return weighted(loss, weight, reduction)


def weighted(loss, weight, reduction):
    """The reduced loss; a weighted mean is over the sum of the weights."""
    if weight is None:
        return reduced_by(loss, reduction)
    total = loss * weight
    if reduction == "mean":
        return total.sum() / weight.broadcast_to(loss.shape).sum()
    return reduced_by(total, reduction)


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction="mean", label_smoothing=0.0,
):  # fmt: skip
    """torch.nn.functional.cross_entropy of logits with labels or class probabilities."""
    reduction = reduction_of(size_average, reduce, reduction)
    return ops.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction="mean",
):  # fmt: skip
    """torch.nn.functional.nll_loss of log-probabilities."""
    reduction = reduction_of(size_average, reduce, reduction)
    return ops.nll_loss(input, target, weight, ignore_index, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """torch.nn.functional.l1_loss, with an optional weight of each element."""
    reduction = reduction_of(size_average, reduce, reduction)
    return weighted(absolute(input - target), weight, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """torch.nn.functional.gaussian_nll_loss; a variance below ``eps`` keeps its gradient."""
    if var.shape == input.shape[:-1]:
        var = var.expand_dims(-1)
    low = ops.stop_gradient(ops.maximum(eps - var, ops.zeros_like(var)))
    var = var + low
    loss = 0.5 * (ops.log(var) + ops.square(input - target) / var)
    return reduced_by(loss + 0.9189385332046727 if full else loss, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """torch.nn.functional.smooth_l1_loss: squared below ``beta``, linear above."""
    reduction = reduction_of(size_average, reduce, reduction)
    gap = ops.abs(input - target)
    if beta == 0:
        return reduced_by(gap, reduction)
    return reduced_by(ops.where(gap < beta, 0.5 * gap * gap / beta, gap - 0.5 * beta), reduction)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """torch.nn.functional.binary_cross_entropy_with_logits, safe for large logits."""
    reduction = reduction_of(size_average, reduce, reduction)
    below = ops.where(input == 0, -input / 2, ops.relu(-input))  # a slope of -1/2 at zero
    extra = ops.log1p(ops.exp(-ops.abs(input))) + below
    if pos_weight is None:
        loss = (1 - target) * input + extra
    else:
        loss = (1 - target) * input + (1 + (pos_weight - 1) * target) * extra
    return reduced_by(loss if weight is None else loss * weight, reduction)


def hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    """torch.nn.functional.hinge_embedding_loss: x for the target 1, else max(margin - x, 0)."""
    reduction = reduction_of(size_average, reduce, reduction)
    pulled = ops.where(target == -1, ops.zeros_like(input), input)
    pushed = ops.where(target == 1, ops.zeros_like(input), positive_part(margin - input))
    return reduced_by(pulled + pushed, reduction)
