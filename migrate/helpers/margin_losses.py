"""In: torch.nn's arguments of margin and distance losses. Out: Cells that compute them."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.activation import softplus_of
from migrate.helpers.functional import cosine_similarity, pairwise_distance
from migrate.helpers.layers import Linear
from migrate.helpers.loss_functional import positive_part, reduced_by
from migrate.helpers.losses import as_labels, keep_buffer, reduction_of


class MarginRankingLoss(nn.Cell):
    """Reproduces torch.nn.MarginRankingLoss."""

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.margin, self.reduction = margin, reduction_of(size_average, reduce, reduction)

    def construct(self, input1, input2, target):
        return reduced_by(positive_part(-target * (input1 - input2) + self.margin), self.reduction)


class HingeEmbeddingLoss(nn.Cell):
    """Reproduces torch.nn.HingeEmbeddingLoss for targets 1 and -1."""

    def __init__(self, margin=1.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.margin, self.reduction = margin, reduction_of(size_average, reduce, reduction)

    def construct(self, input, target):
        far = ops.where(target != 1, positive_part(self.margin - input), ops.zeros_like(input))
        near = ops.where(target != -1, input, ops.zeros_like(input))
        return reduced_by(far + near, self.reduction)


class CosineEmbeddingLoss(nn.Cell):
    """Reproduces torch.nn.CosineEmbeddingLoss for (N, D) or (D,) and targets 1 and -1."""

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.margin, self.reduction = margin, reduction_of(size_average, reduce, reduction)

    def construct(self, input1, input2, target):
        first = ops.square(input1).sum(-1) + 1e-12
        second = ops.square(input2).sum(-1) + 1e-12
        cosine = (input1 * input2).sum(-1) / ops.sqrt(first * second)
        zero = ops.zeros_like(cosine)
        loss = ops.where(target == 1, 1 - cosine, zero)
        loss = loss + ops.where(target == -1, positive_part(cosine - self.margin), zero)
        return reduced_by(loss, self.reduction)


class SoftMarginLoss(nn.Cell):
    """Reproduces torch.nn.SoftMarginLoss without overflow."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)

    def construct(self, input, target):
        return reduced_by(softplus_of(-target * input), self.reduction)


class MultiLabelSoftMarginLoss(nn.Cell):
    """Reproduces torch.nn.MultiLabelSoftMarginLoss for (N, C) or (C,)."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)
        keep_buffer(self, "weight", weight)

    def construct(self, input, target):
        loss = target * softplus_of(-input) + (1 - target) * softplus_of(input)
        if self.weight is not None:
            loss = loss * self.weight
        return reduced_by(loss.mean(-1), self.reduction)


class MultiMarginLoss(nn.Cell):
    """Reproduces torch.nn.MultiMarginLoss for (N, C) or (C,); p is 1 or 2."""

    def __init__(
        self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
    ):
        super().__init__()
        self.p, self.margin = p, margin
        self.reduction = reduction_of(size_average, reduce, reduction)
        keep_buffer(self, "weight", weight)

    def construct(self, input, target):
        if input.size == 0 and self.reduction != "none":
            return ops.full((), 0.0, dtype=input.dtype)  # torch's mean of nothing is 0 here
        rows = input if input.ndim == 2 else input.expand_dims(0)
        labels = as_labels(target).reshape(-1, 1)
        right = ops.gather_elements(rows, 1, labels)
        others = ops.arange(rows.shape[1]).astype(ms.int32).expand_dims(0) != labels
        loss = ops.relu(self.margin - right + rows)
        loss = ops.where(others, loss * loss if self.p == 2 else loss, ops.zeros_like(loss))
        if self.weight is not None:
            loss = loss * ops.gather(self.weight, labels, 0)
        loss = loss.sum(1) / rows.shape[1]
        return reduced_by(loss if input.ndim == 2 else loss.squeeze(0), self.reduction)


class MultiLabelMarginLoss(nn.Cell):
    """Reproduces torch.nn.MultiLabelMarginLoss: labels of a row count up to the first -1."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)

    def construct(self, input, target):
        rows = input if input.ndim == 2 else input.expand_dims(0)
        labels = as_labels(target).reshape(rows.shape)
        given = ops.cumsum((labels < 0).astype(ms.int32), 1) == 0
        labels = ops.where(given, labels, ops.zeros_like(labels))
        classes = ops.arange(rows.shape[1]).astype(ms.int32).reshape((1, 1, -1))
        hits = ops.logical_and(labels.expand_dims(2) == classes, given.expand_dims(2))
        right = hits.astype(rows.dtype).sum(1) > 0
        wanted = ops.gather_elements(rows, 1, labels)
        loss = ops.relu(1 - wanted.expand_dims(2) + rows.expand_dims(1))
        counted = ops.logical_and(given.expand_dims(2), ops.logical_not(right.expand_dims(1)))
        loss = ops.where(counted, loss, ops.zeros_like(loss)).sum((1, 2)) / rows.shape[1]
        return reduced_by(loss if input.ndim == 2 else loss.squeeze(0), self.reduction)


def triplet_loss(near, far, swapped, margin):
    """max(near - far + margin, 0), far being the smaller distance where ``swapped`` is given."""
    far = far if swapped is None else ops.minimum(far, swapped)
    return positive_part(near - far + margin)


class TripletMarginLoss(nn.Cell):
    """Reproduces torch.nn.TripletMarginLoss."""

    def __init__(
        self,
        margin=1.0,
        p=2.0,
        eps=1e-6,
        swap=False,
        size_average=None,
        reduce=None,
        reduction="mean",
    ):
        super().__init__()
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap
        self.reduction = reduction_of(size_average, reduce, reduction)

    def construct(self, anchor, positive, negative):
        near = row_norm(anchor - positive + self.eps, self.p)
        far = row_norm(anchor - negative + self.eps, self.p)
        swapped = row_norm(positive - negative + self.eps, self.p) if self.swap else None
        return reduced_by(triplet_loss(near, far, swapped, self.margin), self.reduction)


class TripletMarginWithDistanceLoss(nn.Cell):
    """Reproduces torch.nn.TripletMarginWithDistanceLoss; the distance defaults to the 2-norm."""

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__()
        self.distance_function, self.margin = distance_function, margin
        self.swap, self.reduction = swap, reduction

    def _distance(self, a, b):
        if self.distance_function is None:
            return row_norm(a - b + 1e-6, 2)
        return self.distance_function(a, b)

    def construct(self, anchor, positive, negative):
        near, far = self._distance(anchor, positive), self._distance(anchor, negative)
        swapped = self._distance(positive, negative) if self.swap else None
        return reduced_by(triplet_loss(near, far, swapped, self.margin), self.reduction)


class LinearCrossEntropyLoss(nn.Cell):
    """Reproduces torch.nn.LinearCrossEntropyLoss: a linear layer, then the cross entropy.

    ``options`` (torch's chunking, which changes no number) is ignored.
    """

    def __init__(
        self,
        in_features,
        num_classes,
        *,
        out_features=(),
        bias=False,
        device=None,
        dtype=None,
        reduction="mean",
        weight=None,
        ignore_index=None,
        label_smoothing=0.0,
        options=None,
    ):
        super().__init__()
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index = -100 if ignore_index is None else ignore_index
        self.reduction, self.label_smoothing = reduction, label_smoothing
        size = num_classes
        for length in self.out_features:
            size *= length
        self.linear = Linear(in_features, size, bias, dtype=dtype)
        keep_buffer(self, "weight", weight)

    def construct(self, input, target):
        logits = self.linear(input)
        if len(self.out_features) > 0:
            logits = logits.reshape((input.shape[0], self.num_classes, *self.out_features))
        return ops.cross_entropy(
            logits,
            as_labels(target),
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )


class CosineSimilarity(nn.Cell):
    """Reproduces torch.nn.CosineSimilarity, with broadcasting; each norm is at least eps."""

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def construct(self, x1, x2):
        return cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(nn.Cell):
    """Reproduces torch.nn.PairwiseDistance: the p-norm of x1 - x2 + eps over the last axis."""

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def construct(self, x1, x2):
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


def row_norm(x, p):
    """The p-norm of each row (last axis) of x."""
    size = ops.abs(x)
    if p == float("inf"):
        return size.amax(-1)
    if p == 1:
        return size.sum(-1)
    return ops.sqrt(ops.square(x).sum(-1)) if p == 2 else ops.pow(ops.pow(size, p).sum(-1), 1 / p)
