"""In: scores and labels. Out: torch.nn.functional's losses that compare a label with the others."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.activation import softplus_of
from migrate.helpers.loss_functional import positive_part, reduced_by, reduction_of
from migrate.helpers.losses import as_labels, lengths_of, split_targets
from migrate.helpers.selections import loss_selected, mean_selected


def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None,
    reduction="mean",
):  # fmt: skip
    """torch.nn.functional.multi_margin_loss for (N, C), (C,) or one score; p is 1 or 2."""
    reduction = reduction_of(size_average, reduce, reduction)
    if input.size == 0 and reduction != "none":
        return ops.full((), 0.0, dtype=input.dtype)  # torch's mean of nothing is 0 here
    rows = input if input.ndim == 2 else input.reshape((1, -1))
    labels = target.astype(ms.int32).reshape((-1, 1))
    right = ops.gather_elements(rows, 1, labels)
    others = ops.arange(rows.shape[1]).astype(ms.int32).unsqueeze(0) != labels
    loss = ops.relu(margin - right + rows)
    loss = ops.where(others, loss * loss if p == 2 else loss, ops.zeros_like(loss))
    if weight is not None:
        loss = loss * ops.gather(weight, labels, 0)
    loss = loss.sum(1) / rows.shape[1]
    return reduced_by(loss if target.ndim > 0 else loss.squeeze(0), reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """torch.nn.functional.multilabel_margin_loss: labels of a row count up to the first -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    rows = input if input.ndim == 2 else input.reshape((1, -1))
    labels = target.astype(ms.int32).reshape(rows.shape)
    given = ops.cumsum((labels < 0).astype(ms.int32), 1) == 0
    labels = ops.where(given, labels, ops.zeros_like(labels))
    classes = ops.arange(rows.shape[1]).astype(ms.int32).reshape((1, 1, -1))
    hits = ops.logical_and(labels.unsqueeze(2) == classes, given.unsqueeze(2))
    right = hits.astype(ms.int32).sum(1) > 0
    wanted = ops.gather_elements(rows, 1, labels)
    loss = ops.relu(1 - wanted.unsqueeze(2) + rows.unsqueeze(1))
    counted = ops.logical_and(given.unsqueeze(2), ops.logical_not(right.unsqueeze(1)))
    loss = ops.where(counted, loss, ops.zeros_like(loss)).sum((1, 2)) / rows.shape[1]
    return reduced_by(loss if input.ndim == 2 else loss.squeeze(0), reduction)


def cosine_embedding_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    """torch.nn.functional.cosine_embedding_loss for (N, D) or (D,) and targets 1 and -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    first = ops.square(input1).sum(-1) + 1e-12
    second = ops.square(input2).sum(-1) + 1e-12
    cosine = (input1 * input2).sum(-1) / ops.sqrt(first * second)
    zero = ops.zeros_like(cosine)
    loss = ops.where(target == 1, 1 - cosine, zero)
    loss = loss + ops.where(target == -1, positive_part(cosine - margin), zero)
    return reduced_by(loss, reduction)


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
    zero_infinity=False,
):  # fmt: skip
    """torch.nn.functional.ctc_loss; as in torch, its gradient takes log_probs as log-softmax.

    ``log_probs`` is (T, N, C) or (T, C). ``targets`` is (N, S), or the sequences one after
    another; lengths may be tensors, lists or tuples.
    """
    single = log_probs.ndim == 2
    table = log_probs.unsqueeze(1) if single else log_probs
    lengths = lengths_of(input_lengths, table.shape[1])
    sizes = lengths_of(target_lengths, table.shape[1])
    if targets.ndim == 1:
        targets = split_targets(targets, sizes)
    loss, _ = ops.ctc_loss(
        table, targets.astype(ms.int32), lengths, sizes, blank, "none", zero_infinity
    )
    if reduction == "mean":
        return (loss / ops.maximum(sizes, ops.ones_like(sizes)).astype(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss.squeeze(0) if single else loss


def linear_cross_entropy(
    input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean",
    ignore_index=None, label_smoothing=0.0, options=None,
):  # fmt: skip
    """torch.nn.functional.linear_cross_entropy: a linear layer, then the cross entropy.

    ``linear_weight`` is (classes, ..., features). ``options`` (torch's chunking) is ignored.
    """
    features, lengths = linear_weight.shape[-1], linear_weight.shape[:-1]
    logits = ops.matmul(input, linear_weight.reshape((-1, features)).swapaxes(0, 1))
    if linear_bias is not None:
        logits = logits + linear_bias.reshape((-1,))
    logits = logits.reshape((*input.shape[:-1], *lengths))
    ignored = -100 if ignore_index is None else ignore_index
    loss = ops.cross_entropy(logits, as_labels(target), weight, ignored, reduction, label_smoothing)
    return loss_selected(loss, logits, reduction)


def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """torch.nn.functional.multilabel_soft_margin_loss, without overflow of large scores."""
    reduction = reduction_of(size_average, reduce, reduction)
    loss = target * softplus_of(-input) + (1 - target) * softplus_of(input)
    loss = mean_selected(loss if weight is None else loss * weight, -1)
    return reduced_by(loss, reduction)
