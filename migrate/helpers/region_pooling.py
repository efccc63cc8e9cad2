"""In: feature maps and boxes. Out: what torchvision's other poolings take from each box."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.regions import numbered_boxes, pooled_regions, roi_align


def whole_places(boxes, spatial_scale):
    """Corners of numbered boxes in whole pixels, (K, 4); a half goes away from zero as in C."""
    places = boxes if boxes.dtype == ms.float64 else boxes.astype(ms.float32)
    places = places[:, 1:] * ms.Tensor(spatial_scale, places.dtype)
    return ops.sign(places) * ops.floor(ops.abs(places) + 0.5)


def lines_of_bins(start, size, bins, lines, last):
    """Which lines of pixels each bin has along one axis: (K, bins, lines), bounded by ``last``."""
    step = (size / bins).reshape((-1, 1, 1))
    bin = ops.arange(bins).astype(start.dtype).reshape((1, -1, 1))
    line = ops.arange(lines).astype(start.dtype).reshape((1, 1, -1))
    start = start.reshape((-1, 1, 1))
    first = ops.clamp(ops.floor(bin * step) + start, 0, last)
    end = ops.clamp(ops.ceil((bin + 1) * step) + start, 0, last)
    return ops.logical_and(line >= first, line < end)


def roi_pool(input, boxes, output_size, spatial_scale=1.0):
    """torchvision.ops.roi_pool: (N, C, H, W) and boxes to (K, C, height, width), the maximum of
    each bin in whole pixels, 0 for a bin without any. Boxes have no gradient."""
    boxes = ops.stop_gradient(numbered_boxes(boxes))
    high, wide = (output_size, output_size) if isinstance(output_size, int) else output_size
    if boxes.shape[0] == 0:
        return ops.zeros((0, input.shape[1], high, wide), input.dtype)
    places = whole_places(boxes, spatial_scale)
    size = places[:, 2:] - places[:, :2] + 1
    size = ops.maximum(size, ops.ones_like(size))
    height, width = input.shape[2:]
    rows = lines_of_bins(places[:, 1], size[:, 1], high, height, height)
    columns = lines_of_bins(places[:, 0], size[:, 0], wide, width, width)
    lowest = ops.full((1,), -3.4028234663852886e38, dtype=input.dtype)
    block = max(1, 2**25 // (high * input.shape[1] * height * width))
    parts = []
    for first in range(0, boxes.shape[0], block):
        some = input[boxes[first : first + block, 0].astype(ms.int32)].unsqueeze(2)
        inside = rows[first : first + block].unsqueeze(1).unsqueeze(-1)
        lines = ops.max(ops.where(inside, some, lowest), 3)[0].unsqueeze(3)
        inside = columns[first : first + block].unsqueeze(1).unsqueeze(2)
        parts.append(ops.max(ops.where(inside, lines, lowest), 4)[0])
    pooled = ops.cat(parts) if len(parts) > 1 else parts[0]
    filled = ops.logical_and(rows.any(-1).unsqueeze(-1), columns.any(-1).unsqueeze(1))
    return ops.where(filled.unsqueeze(1), pooled, ops.zeros_like(pooled))


def of_own_channel(pooled, high, wide):
    """Each bin of its own channel: (K, C, P, Q) to (K, C / P / Q, P, Q)."""
    if pooled.shape[1] % (high * wide):
        raise ValueError(f"{pooled.shape[1]} channels are no multiple of {high} * {wide} bins")
    own_channels = pooled.shape[1] // (high * wide)
    if pooled.shape[0] == 0:
        return ops.zeros((0, own_channels, high, wide), pooled.dtype)
    bins = pooled.reshape((pooled.shape[0], own_channels, high * wide, high * wide))
    own = ops.eye(high * wide, high * wide, ms.bool_)
    bins = ops.where(own, bins, ops.zeros_like(bins)).sum(-1)
    return bins.reshape((*bins.shape[:2], high, wide))


def ps_roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1):
    """torchvision.ops.ps_roi_align: (N, C * height * width, H, W) to (K, C, height, width).

    A box without area has 0 with adaptive sampling, where torchvision divides 0 by 0.
    """
    high, wide = (output_size, output_size) if isinstance(output_size, int) else output_size
    pooled = roi_align(input, boxes, (high, wide), spatial_scale, sampling_ratio, True)
    return of_own_channel(pooled, high, wide)


def ps_roi_pool(input, boxes, output_size, spatial_scale=1.0):
    """torchvision.ops.ps_roi_pool: (N, C * height * width, H, W) to (K, C, height, width), the
    mean of each bin in whole pixels; as in torchvision without the last line of each axis."""
    boxes = ops.stop_gradient(numbered_boxes(boxes))
    high, wide = (output_size, output_size) if isinstance(output_size, int) else output_size
    if boxes.shape[0] == 0:
        return ops.zeros((0, input.shape[1] // (high * wide), high, wide), input.dtype)
    places = whole_places(boxes, spatial_scale)
    size = places[:, 2:] - places[:, :2]
    size = ops.maximum(size, ops.ones_like(size))
    height, width = input.shape[2:]
    rows = lines_of_bins(places[:, 1], size[:, 1], high, height, height - 1).astype(input.dtype)
    columns = lines_of_bins(places[:, 0], size[:, 0], wide, width, width - 1).astype(input.dtype)
    rows = rows / ops.clamp(rows.sum(-1, keepdims=True), 1)
    columns = columns / ops.clamp(columns.sum(-1, keepdims=True), 1)
    pooled = pooled_regions(input, boxes[:, 0].astype(ms.int32), rows, columns)
    return of_own_channel(pooled, high, wide)


class RoIPool(nn.Cell):
    """torchvision.ops.RoIPool: roi_pool with settings that stay."""

    def __init__(self, output_size, spatial_scale):
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def construct(self, input, rois):
        return roi_pool(input, rois, self.output_size, self.spatial_scale)


class PSRoIAlign(nn.Cell):
    """torchvision.ops.PSRoIAlign: ps_roi_align with settings that stay."""

    def __init__(self, output_size, spatial_scale, sampling_ratio):
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio = sampling_ratio

    def construct(self, input, rois):
        return ps_roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio)


class PSRoIPool(nn.Cell):
    """torchvision.ops.PSRoIPool: ps_roi_pool with settings that stay."""

    def __init__(self, output_size, spatial_scale):
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def construct(self, input, rois):
        return ps_roi_pool(input, rois, self.output_size, self.spatial_scale)
