"""In: maps and boxes. Out: that our poolings give what the loops of torchvision's kernels give."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore: the helper itself runs here", allow_module_level=True)

import mindspore as ms

from migrate.helpers import deformable, region_pooling

BOXES = [
    [1, 4, 4, 20, 36],
    [0, 0, 0, 51, 39],
    [2, 8, 8, 8.5, 8.5],
    [1, 30, 2.5, 51, 3],
    [0, -60, -20, 90, 20],
    [1, 10, 10, 5, 3],
    [2, 60, 50, 90, 80],
    [0, 2, 6, 10, 18],
]
SIZES = [(3, 3), (1, 2), (2, 4)]


def maps(channels: int) -> Any:
    return np.random.RandomState(0).randn(3, channels, 10, 13).astype(np.float32)


def away(number: float) -> int:
    return int(math.copysign(math.floor(abs(number) + 0.5), number))


def bins(box: Any, size: Any, scale: float, more: int, last: Any) -> Any:
    """The lines and columns of each bin of a box, as the kernels count them."""
    left, top, right, bottom = (away(c * scale) for c in box)
    for p, q in np.ndindex(*size):
        ranges = []
        for at, start, end, count, bound in (
            (p, top, bottom, size[0], last[0]),
            (q, left, right, size[1], last[1]),
        ):
            step = np.float32(max(end - start + more, 1)) / np.float32(count)
            low = math.floor(np.float32(at) * step) + start
            high = math.ceil(np.float32(at + 1) * step) + start
            ranges.append(slice(min(max(low, 0), bound), min(max(high, 0), bound)))
        yield p, q, *ranges


def roi_pool(x: Any, size: Any, scale: float) -> Any:
    out = np.zeros((len(BOXES), x.shape[1], *size))
    for k, (image, *box) in enumerate(BOXES):
        for p, q, rows, columns in bins(box, size, scale, 1, x.shape[2:]):
            part = x[int(image), :, rows, columns]
            out[k, :, p, q] = part.max((1, 2)) if part.size else 0
    return out


def ps_roi_pool(x: Any, size: Any, scale: float) -> Any:
    channels = x.shape[1] // (size[0] * size[1])
    out = np.zeros((len(BOXES), channels, *size))
    for k, (image, *box) in enumerate(BOXES):
        for p, q, rows, columns in bins(box, size, scale, 0, (x.shape[2] - 1, x.shape[3] - 1)):
            own = x.reshape(3, channels, *size, *x.shape[2:])[int(image), :, p, q, rows, columns]
            out[k, :, p, q] = own.mean((1, 2)) if own.size else 0
    return out


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_pooling_of_whole_pixels(size: Any, scale: float) -> None:
    boxes = ms.Tensor(BOXES, ms.float32)
    found = region_pooling.roi_pool(ms.Tensor(maps(4)), boxes, size, scale).asnumpy()
    np.testing.assert_array_equal(found, roi_pool(maps(4), size, scale).astype(np.float32))
    x = maps(2 * size[0] * size[1])
    found = region_pooling.PSRoIPool(size, scale)(ms.Tensor(x), boxes).asnumpy()
    wanted = ps_roi_pool(x, size, scale)
    assert np.abs(wanted).max() > 0.1
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)


def test_a_maximum_has_its_gradient_at_the_first_pixel() -> None:
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 1:3, 1:3] = 5  # four equal ones in one bin
    boxes = ms.Tensor([[0, 0, 0, 3, 3]], ms.float32)
    grad = ms.grad(lambda a: region_pooling.roi_pool(a, boxes, 1).sum())(ms.Tensor(x)).asnumpy()
    assert grad[0, 0, 1, 1] == 1 and grad.sum() == 1


def test_each_bin_of_ps_roi_align_looks_at_its_own_channel() -> None:
    x, boxes = maps(12), ms.Tensor(BOXES, ms.float32)
    whole = region_pooling.roi_align(ms.Tensor(x), boxes, (2, 3), 0.25, 2, True).asnumpy()
    found = region_pooling.PSRoIAlign((2, 3), 0.25, 2)(ms.Tensor(x), boxes).asnumpy()
    for c, p, q in np.ndindex(2, 2, 3):
        np.testing.assert_array_equal(found[:, c, p, q], whole[:, (c * 2 + p) * 3 + q, p, q])
    with pytest.raises(ValueError, match="12 channels"):
        region_pooling.ps_roi_align(ms.Tensor(x), boxes, 5)


def test_no_boxes_give_nothing() -> None:
    nothing = [ms.Tensor(np.zeros((0, 4), np.float32))] * 3
    x = ms.Tensor(maps(4))
    assert region_pooling.RoIPool((2, 1), 1.0)(x, nothing).shape == (0, 4, 2, 1)
    assert region_pooling.ps_roi_pool(x, nothing, (2, 1)).shape == (0, 2, 2, 1)
    assert region_pooling.ps_roi_align(x, nothing, 2).shape == (0, 1, 2, 2)


def pixel(image: Any, y: float, x: float) -> Any:
    """The kernel's sample of (C, H, W): corners outside are 0."""
    height, width = image.shape[1:]
    if y <= -1 or y >= height or x <= -1 or x >= width:
        return np.zeros(len(image))
    total = np.zeros(len(image))
    for i in (math.floor(y), math.floor(y) + 1):
        for j in (math.floor(x), math.floor(x) + 1):
            if 0 <= i < height and 0 <= j < width:
                total += (1 - abs(y - i)) * (1 - abs(x - j)) * image[:, i, j]
    return total


def deformed(x: Any, offset: Any, weight: Any, bias: Any, mask: Any, settings: Any) -> Any:
    """The loop of torchvision's kernel, in float64."""
    (stride, padding, dilation), (high, wide) = settings, offset.shape[2:]
    o, of_group, tall, across = weight.shape
    groups, parts = offset.shape[1] // (2 * tall * across), x.shape[1] // of_group
    out = np.zeros((len(x), o, high, wide)) + bias.reshape(1, -1, 1, 1)
    for n, p, q, i, j, g in np.ndindex(len(x), high, wide, tall, across, groups):
        tap = (g * tall + i) * across + j
        y = p * stride[0] - padding[0] + i * dilation[0] + offset[n, 2 * tap, p, q]
        at = q * stride[1] - padding[1] + j * dilation[1] + offset[n, 2 * tap + 1, p, q]
        size = x.shape[1] // groups
        values = pixel(x[n, g * size : (g + 1) * size], y, at) * mask[n, tap, p, q]
        for c, value in enumerate(values, g * size):
            part = slice(c // of_group * (o // parts), (c // of_group + 1) * (o // parts))
            out[n, part, p, q] += weight[part, c % of_group, i, j] * value
    return out


@pytest.mark.parametrize("settings", [((1, 1), (0, 0), (1, 1)), ((2, 1), (1, 2), (1, 2))])
@pytest.mark.parametrize(("groups", "parts"), [(1, 1), (2, 1), (1, 2), (4, 2)])
@pytest.mark.parametrize("masked", [False, True])
def test_deformed_convolution(settings: Any, groups: int, parts: int, masked: bool) -> None:
    rng = np.random.RandomState(3)
    stride, padding, dilation = settings
    x = rng.randn(2, 4, 7, 6).astype(np.float32)
    weight = rng.randn(6, 4 // parts, 3, 2).astype(np.float32)
    bias = rng.randn(6).astype(np.float32)
    high = (7 + 2 * padding[0] - dilation[0] * 2 - 1) // stride[0] + 1
    wide = (6 + 2 * padding[1] - dilation[1] - 1) // stride[1] + 1
    offset = (rng.randn(2, 2 * groups * 6, high, wide) * 3).astype(np.float32)
    mask = rng.rand(2, groups * 6, high, wide).astype(np.float32)
    wanted = deformed(x, offset, weight, bias, mask if masked else mask * 0 + 1, settings)
    layer = deformable.DeformConv2d(4, 6, (3, 2), *settings, parts)
    layer.weight.set_data(ms.Tensor(weight))
    layer.bias.set_data(ms.Tensor(bias))
    given = [ms.Tensor(x), ms.Tensor(offset)] + ([ms.Tensor(mask)] if masked else [])
    found = layer(*given).asnumpy()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-5)


def test_the_gradient_of_an_offset_is_the_slope_of_the_loop() -> None:
    rng = np.random.RandomState(4)
    x, weight = rng.randn(1, 2, 5, 5).astype(np.float32), rng.randn(3, 2, 2, 2).astype(np.float32)
    offset = (rng.rand(1, 8, 4, 4) * 0.8 + 0.1).astype(np.float32)
    settings, none = ((1, 1), (0, 0), (1, 1)), np.zeros(3, np.float32)
    grads = ms.grad(lambda *a: deformable.deform_conv2d(*a).sum(), (0, 1, 2))(
        ms.Tensor(x), ms.Tensor(offset), ms.Tensor(weight)
    )
    for position, array in enumerate((x, offset, weight)):
        place = tuple(s // 2 for s in array.shape)
        ends = []
        for sign in (1, -1):
            moved = [a.astype(np.float64) for a in (x, offset, weight)]
            moved[position][place] += sign * 1e-4
            mask = np.ones((1, 4, 4, 4))
            ends.append(deformed(*moved, none, mask, settings).sum())
        slope = (ends[0] - ends[1]) / 2e-4
        assert abs(slope) > 1e-2 and abs(grads[position].asnumpy()[place] - slope) < 2e-4


def test_offsets_that_do_not_fit_raise() -> None:
    x, weight = ms.Tensor(maps(2)), ms.Tensor(np.ones((3, 2, 2, 2), np.float32))
    with pytest.raises(ValueError, match="offsets"):
        deformable.deform_conv2d(x, ms.Tensor(np.ones((3, 4, 9, 12), np.float32)), weight)
