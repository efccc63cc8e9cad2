"""In: boxes, scores and logits. Out: what torchvision.ops gives for them, box by box."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.gathering import nonzero_tuple
from migrate.helpers.loss_functional import binary_cross_entropy_with_logits
from migrate.helpers.reduction import argsort
from migrate.helpers.selections import mean_selected, sum_selected
from migrate.helpers.uniqueness import unique


def wide_numbers(values):
    """float32, float64, int32 and int64 stay; what could overflow in a product gets 32 bits."""
    if values.dtype in (ms.float32, ms.float64, ms.int32, ms.int64):
        return values
    return values.astype(ms.float32 if values.is_floating_point() else ms.int32)


def bounded(values, low, high=None):
    """``values`` within the bounds; nan stays nan, and a value on a bound keeps its gradient."""
    values = ops.where(values < low, low, values)
    return values if high is None else ops.where(values > high, high, values)


def box_area(boxes, fmt="xyxy"):
    """torchvision.ops.box_area: (..., 4) to (...), for 'xyxy', 'xywh' and 'cxcywh'."""
    if fmt not in ("xyxy", "xywh", "cxcywh"):
        raise ValueError(f"box_area: no area of boxes in the format {fmt}")
    boxes = wide_numbers(boxes)
    if fmt == "xyxy":
        return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return boxes[..., 2] * boxes[..., 3]


def box_corners(boxes, fmt):
    """The upper left and the lower right corner of boxes (..., 4), each (..., 2)."""
    if fmt == "xyxy":
        return boxes[..., :2], boxes[..., 2:]
    if fmt == "xywh":
        return boxes[..., :2], boxes[..., :2] + boxes[..., 2:]
    half = boxes[..., 2:] / 2
    return boxes[..., :2] - half, boxes[..., :2] + half


def box_inter_union(boxes1, boxes2, fmt="xyxy"):
    """Areas of the intersections and unions of (..., N, 4) and (..., M, 4): (..., N, M) each."""
    area1, area2 = box_area(boxes1, fmt), box_area(boxes2, fmt)
    if boxes1.size == 0 or boxes2.size == 0:  # MindSpore has no extremes of nothing
        nothing = ops.zeros((*area1.shape, boxes2.shape[-2]), area1.dtype)
        return nothing, nothing
    low1, high1 = box_corners(boxes1.unsqueeze(-2), fmt)
    low2, high2 = box_corners(boxes2.unsqueeze(-3), fmt)
    sides = bounded(wide_numbers(ops.minimum(high1, high2) - ops.maximum(low1, low2)), 0)
    inter = sides[..., 0] * sides[..., 1]
    return inter, area1.unsqueeze(-1) + area2.unsqueeze(-2) - inter


def box_iou(boxes1, boxes2, fmt="xyxy"):
    """torchvision.ops.box_iou of boxes along the axes: (..., N, 4), (..., M, 4) to (..., N, M)."""
    inter, union = box_inter_union(boxes1, boxes2, fmt)
    return inter / union


def generalized_box_iou(boxes1, boxes2):
    """torchvision.ops.generalized_box_iou: (..., N, 4), (..., M, 4) to (..., N, M)."""
    inter, union = box_inter_union(boxes1, boxes2)
    if inter.size == 0:
        return inter / union
    low1, high1 = box_corners(boxes1.unsqueeze(-2), "xyxy")
    low2, high2 = box_corners(boxes2.unsqueeze(-3), "xyxy")
    sides = bounded(wide_numbers(ops.maximum(high1, high2) - ops.minimum(low1, low2)), 0)
    around = sides[..., 0] * sides[..., 1]
    return inter / union - (around - union) / around


def box_convert(boxes, in_fmt, out_fmt):
    """torchvision.ops.box_convert between 'xyxy', 'xywh' and 'cxcywh'; others raise an error."""
    for fmt in (in_fmt, out_fmt):
        if fmt not in ("xyxy", "xywh", "cxcywh"):
            raise ValueError(f"box_convert: boxes in the format {fmt} have no conversion yet")
    if in_fmt == out_fmt:
        return ops.deepcopy(boxes)
    a, b, c, d = ops.unbind(boxes, -1)
    if in_fmt == "xywh":
        c, d = a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        c, d = c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return ops.stack([a, b, c.astype(a.dtype), d.astype(a.dtype)], -1)


def clip_boxes_to_image(boxes, size):
    """torchvision.ops.clip_boxes_to_image: (..., 4) within ``size``, (height, width)."""
    height, width = size
    x, y = bounded(boxes[..., 0::2], 0, width), bounded(boxes[..., 1::2], 0, height)
    return ops.stack([x, y], boxes.ndim).reshape(boxes.shape)


def remove_small_boxes(boxes, min_size):
    """torchvision.ops.remove_small_boxes: int64 places of boxes with both sides large enough."""
    wide = boxes[..., 2] - boxes[..., 0] >= min_size
    return nonzero_tuple(ops.logical_and(wide, boxes[..., 3] - boxes[..., 1] >= min_size))[0]


def overlapping(boxes1, boxes2, iou_threshold):
    """Which of (N, 4) and (M, 4) overlap by more than the threshold, compared in float64."""
    return box_iou(boxes1, boxes2).astype(ms.float64) > ms.Tensor(iou_threshold, ms.float64)


def best_of_overlapping(overlap):
    """Places that stay when each that stays removes the later ones that it overlaps (N, N).

    The first places are right after as many rounds, and no other choice stays the same in a round.
    """
    later = ops.triu(overlap.astype(ms.float32), 1)
    before, stays = None, ops.ones((later.shape[0],), ms.float32)
    while before is None or not ops.all(before == stays):
        before, stays = stays, (ops.matmul(stays, later) == 0).astype(ms.float32)
    return ops.nonzero(stays)[:, 0]


def nms(boxes, scores, iou_threshold):
    """torchvision.ops.nms: int64 places of the boxes (N, 4) kept, by descending score.

    PyNative only, as the number of boxes kept depends on values. Blocks of the best boxes that
    are left bound the memory for many boxes.
    """
    left = argsort(scores, descending=True)
    kept = [left[:0]]
    while left.shape[0] > 0:
        block, left = left[:512], left[512:]
        inside = overlapping(boxes[block], boxes[block], iou_threshold)
        best = block[best_of_overlapping(inside)]
        kept.append(best)
        if left.shape[0] > 0:
            hit = ops.any(overlapping(boxes[best], boxes[left], iou_threshold), 0)
            left = left[ops.nonzero(ops.logical_not(hit))[:, 0]]
    return ops.cat(kept)


def batched_nms(boxes, scores, idxs, iou_threshold):
    """torchvision.ops.batched_nms: nms among the boxes of each category. PyNative only.

    As in torchvision up to 1000 boxes are moved apart by category, and more go one by one.
    """
    if boxes.size == 0:
        return ops.zeros((0,), ms.int64)
    if boxes.size <= 4000:
        apart = idxs.astype(boxes.dtype) * (boxes.max() + 1)
        return nms(boxes + apart.unsqueeze(-1), scores, iou_threshold)
    kept = []
    for category in unique(idxs):
        places = ops.nonzero(idxs == category)[:, 0]
        kept.append(places[nms(boxes[places], scores[places], iou_threshold)])
    places = ops.sort(ops.cat(kept))[0]
    return places[argsort(scores[places], descending=True)]


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2, reduction="none"):
    """torchvision.ops.sigmoid_focal_loss of logits and targets of one shape."""
    if not 0 <= alpha <= 1 and alpha != -1:
        raise ValueError(f"sigmoid_focal_loss: alpha is {alpha}, not within 0 and 1, nor -1")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"sigmoid_focal_loss: there is no reduction {reduction!r}")
    p = ops.sigmoid(inputs)
    hit = p * targets + (1 - p) * (1 - targets)
    loss = binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = loss * ops.pow(1 - hit, gamma)
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    if reduction == "none":
        return loss
    return mean_selected(loss) if reduction == "mean" else sum_selected(loss)


class FrozenBatchNorm2d(nn.Cell):
    """torchvision.ops.FrozenBatchNorm2d: (N, C, H, W) by statistics that are not trained."""

    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = ms.Parameter(ops.ones(num_features), requires_grad=False)
        self.bias = ms.Parameter(ops.zeros(num_features), requires_grad=False)
        self.running_mean = ms.Parameter(ops.zeros(num_features), requires_grad=False)
        self.running_var = ms.Parameter(ops.ones(num_features), requires_grad=False)

    def construct(self, x):
        scale = self.weight * ops.rsqrt(self.running_var + self.eps)
        bias = self.bias - self.running_mean * scale
        return x * scale.reshape((1, -1, 1, 1)) + bias.reshape((1, -1, 1, 1))
