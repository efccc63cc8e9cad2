"""In: boxes and scores. Out: that our nms keeps what the loop of torchvision's kernel keeps."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore", allow_module_level=True)

import mindspore as ms

from migrate.helpers import detection


def boxes_and_scores(count: int, tied: bool) -> tuple[Any, Any, Any]:
    rng = np.random.RandomState(count)
    boxes = (rng.rand(count, 4) * (30 if count < 100 else 120)).astype(np.float32)
    scores = rng.rand(count).astype(np.float32)
    if tied:
        boxes, scores = np.round(boxes / 4) * 4, np.round(scores * 5) / 5
    boxes[:, 2:] = boxes[:, :2] + boxes[:, 2:] / 3 + (4 if tied else 0)
    return boxes.astype(np.float32), scores.astype(np.float32), rng.randint(0, 5, count)


def kernel(boxes: Any, scores: Any, threshold: float) -> list[int]:
    """The loop of torchvision's kernel: areas in float32, the threshold in float64."""
    x1, y1, x2, y2 = boxes.T
    areas = (x2 - x1) * (y2 - y1)
    order = np.argsort(-scores, kind="stable")
    gone, kept = np.zeros(len(boxes), bool), []
    for i in order:
        if gone[i]:
            continue
        kept.append(int(i))
        wide = np.maximum(0, np.minimum(x2[i], x2) - np.maximum(x1[i], x1))
        inter = wide * np.maximum(0, np.minimum(y2[i], y2) - np.maximum(y1[i], y1))
        assert inter.dtype == np.float32
        gone |= (inter / (areas[i] + areas - inter)).astype(np.float64) > threshold
    return kept


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("count", [1, 2, 60, 700])
def test_nms_keeps_the_boxes_of_the_kernel_in_its_order(count: int, tied: bool) -> None:
    boxes, scores, _ = boxes_and_scores(count, tied)
    for threshold in (0.1, 1 / 3, 0.5):
        kept = detection.nms(ms.Tensor(boxes), ms.Tensor(scores), threshold)
        assert kept.dtype == ms.int64
        assert kept.asnumpy().tolist() == kernel(boxes, scores, threshold)


def test_a_threshold_is_not_rounded_to_float32() -> None:
    boxes = np.array([[0, 0, 10, 1], [0, 0, 1, 1]], np.float32)  # they overlap by float32(0.1)
    scores = np.array([1, 0], np.float32)
    assert kernel(boxes, scores, 0.1) == [0]
    assert detection.nms(ms.Tensor(boxes), ms.Tensor(scores), 0.1).asnumpy().tolist() == [0]


def test_boxes_without_area_stay_as_in_the_kernel() -> None:
    """Two of them overlap by 0 / 0, which is more than no threshold."""
    boxes = np.array([[0, 8, 0, 8], [0, 8, 0, 8], [1, 1, 4, 4], [1, 1, 4, 4]], np.float32)
    scores = np.array([4, 3, 2, 1], np.float32)
    with np.errstate(invalid="ignore"):
        assert kernel(boxes, scores, 0.5) == [0, 1, 2]
    assert detection.nms(ms.Tensor(boxes), ms.Tensor(scores), 0.5).asnumpy().tolist() == [0, 1, 2]


def test_a_chain_of_boxes_loses_every_other_one() -> None:
    left = np.arange(40, dtype=np.float32)
    boxes = np.stack([left, left * 0, left + 2, left * 0 + 1], 1)
    scores = np.linspace(1, 0, 40).astype(np.float32)
    kept = detection.nms(ms.Tensor(boxes), ms.Tensor(scores), 0.3).asnumpy().tolist()
    assert kept == list(range(0, 40, 2))


@pytest.mark.parametrize("count", [60, 1200])
def test_batched_nms_keeps_the_categories_apart(count: int) -> None:
    boxes, scores, categories = boxes_and_scores(count, False)
    kept = detection.batched_nms(
        ms.Tensor(boxes), ms.Tensor(scores), ms.Tensor(categories), 0.3
    ).asnumpy()
    found: list[int] = []
    for category in range(5):
        places = np.flatnonzero(categories == category)
        found += places[kernel(boxes[places], scores[places], 0.3)].tolist()
    assert kept.tolist() == sorted(found, key=lambda i: -scores[i])


def test_no_boxes_are_none_kept() -> None:
    boxes, scores = ms.Tensor(np.zeros((0, 4), np.float32)), ms.Tensor(np.zeros(0, np.float32))
    categories = ms.Tensor(np.zeros(0, np.int64))
    for kept in (
        detection.nms(boxes, scores, 0.5),
        detection.batched_nms(boxes, scores, categories, 0.5),
    ):
        assert kept.shape == (0,) and kept.dtype == ms.int64


def test_formats_of_rotated_boxes_raise() -> None:
    boxes = ms.Tensor(np.ones((2, 5), np.float32))
    with pytest.raises(ValueError, match="xywhr"):
        detection.box_convert(boxes, "xywhr", "cxcywhr")
    with pytest.raises(ValueError, match="cxcywhr"):
        detection.box_iou(boxes, boxes, "cxcywhr")
