"""In: maps and boxes. Out: that our roi_align gives what the loop of torchvision's kernel gives."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore: the helper itself runs here", allow_module_level=True)

import mindspore as ms

from migrate.helpers.regions import RoIAlign, roi_align

SIZES = [((3, 3), 0, False), ((1, 2), -1, True), ((4, 3), 2, False), ((2, 5), 3, True)]
INSIDE = [[1, 4, 4, 20, 36], [0, 0, 0, 52, 40], [2, 8, 8, 8.5, 8.5], [1, 30, 2.5, 51, 3]]
OUTSIDE = [[0, -60, -20, 90, 20], [1, 10, 10, 5, 3], [2, -2e3, -3e3, 4e3, 2e3], [0, 8, 8, 8, 8]]


def maps() -> Any:
    return np.random.RandomState(0).randn(3, 4, 10, 13).astype(np.float32)


def sample(image: Any, y: float, x: float) -> Any:
    height, width = image.shape[1:]
    if y < -1 or y > height or x < -1 or x > width:
        return 0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    below, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = (1 - (x - left)) * image[:, top, left] + (x - left) * image[:, top, right]
    lower = (1 - (x - left)) * image[:, below, left] + (x - left) * image[:, below, right]
    return (1 - (y - top)) * upper + (y - top) * lower


def kernel(x: Any, boxes: Any, size: Any, scale: float, ratio: int, aligned: bool) -> Any:
    """The loop of torchvision's kernel for CPUs, in float64."""
    out = np.zeros((len(boxes), x.shape[1], *size))
    for k, (image, *corners) in enumerate(np.asarray(boxes, np.float64)):
        left, top, right, bottom = (c * scale - (0.5 if aligned else 0) for c in corners)
        high, wide = bottom - top, right - left
        if not aligned:
            high, wide = max(high, 1), max(wide, 1)
        high, wide = high / size[0], wide / size[1]
        rows = ratio if ratio > 0 else math.ceil(high)
        columns = ratio if ratio > 0 else math.ceil(wide)
        for p, q in np.ndindex(*size):
            for i, j in np.ndindex(max(rows, 0), max(columns, 0)):
                y, at = top + (p + (i + 0.5) / rows) * high, left + (q + (j + 0.5) / columns) * wide
                out[k, :, p, q] += sample(x[int(image)], y, at) / (rows * columns)
    return out


@pytest.mark.parametrize(("size", "ratio", "aligned"), SIZES)
@pytest.mark.parametrize("boxes", [INSIDE, OUTSIDE])
def test_the_numbers_are_those_of_the_kernel(
    boxes: Any, size: Any, ratio: int, aligned: bool
) -> None:
    found = roi_align(
        ms.Tensor(maps()), ms.Tensor(boxes, ms.float32), size, 0.25, ratio, aligned
    ).asnumpy()
    wanted = kernel(maps(), boxes, size, 0.25, ratio, aligned)
    assert np.abs(wanted).max() > 0.02
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)


def test_gradients_add_up_the_weights_of_the_kernel() -> None:
    cotangent = np.random.RandomState(1).randn(4, 4, 3, 3).astype(np.float32)
    step = np.zeros_like(maps())
    step[1, 2, 4, 5] = 1

    def loss(x: Any, boxes: Any) -> Any:
        return (roi_align(x, boxes, 3, 0.25, 2) * ms.Tensor(cotangent)).sum()

    boxes = ms.Tensor(INSIDE, ms.float32)
    grad = ms.grad(loss)(ms.Tensor(maps()), boxes).asnumpy()
    wanted = (kernel(step, INSIDE, (3, 3), 0.25, 2, False) * cotangent).sum()
    assert abs(wanted) > 1e-3 and abs(grad[1, 2, 4, 5] - wanted) < 1e-5
    of_boxes = ms.grad(loss, 1)(ms.Tensor(maps()), boxes).asnumpy()
    assert not of_boxes.any()  # the kernel gives them none


def test_blocks_of_regions_give_what_each_gives_alone() -> None:
    rng = np.random.RandomState(2)
    x = ms.Tensor(rng.randn(1, 128, 3, 4000).astype(np.float32))
    left = rng.rand(40, 1) * 3000
    boxes = np.concatenate([left * 0, left, left * 0, left + 900, left * 0 + 3], 1)
    layer = RoIAlign((7, 2), 1.0, 2)  # nine regions go into a block
    together = layer(x, ms.Tensor(boxes, ms.float32)).asnumpy()
    for k in (0, 8, 9, 39):
        alone = layer(x, ms.Tensor(boxes[k : k + 1], ms.float32)).asnumpy()
        np.testing.assert_allclose(together[k], alone[0], rtol=0, atol=1e-5)


def test_a_list_has_the_boxes_of_each_image_and_none_give_none() -> None:
    some = [[np.asarray(b[1:], np.float32) for b in INSIDE if b[0] == i] for i in range(3)]
    listed = [ms.Tensor(np.stack(one)) for one in some]
    order = [b for i in range(3) for b in INSIDE if b[0] == i]
    found = roi_align(ms.Tensor(maps()), listed, 2).asnumpy()
    assert np.array_equal(
        found, roi_align(ms.Tensor(maps()), ms.Tensor(order, ms.float32), 2).asnumpy()
    )
    nothing = ms.Tensor(np.zeros((0, 4), np.float32))
    assert roi_align(ms.Tensor(maps()), [nothing] * 3, (2, 5)).shape == (0, 4, 2, 5)


def test_what_torchvision_refuses_raises() -> None:
    x = ms.Tensor(maps())
    with pytest.raises(ValueError, match="K, 5"):
        roi_align(x, ms.Tensor(np.ones((2, 4), np.float32)), 2)
    with pytest.raises(ValueError, match="L, 4"):
        roi_align(x, [ms.Tensor(np.ones((2, 5), np.float32))], 2)
    with pytest.raises(TypeError, match="Int32"):
        roi_align(x.astype(ms.int32), ms.Tensor(INSIDE, ms.float32), 2)
