"""In: feature maps and boxes. Out: what torchvision.ops.roi_align pools from each box."""

import mindspore as ms
from mindspore import nn, ops


def numbered_boxes(boxes):
    """Boxes as (K, 5) with the number of their image first, of these or a list of (L, 4)."""
    if isinstance(boxes, ms.Tensor):
        if boxes.shape[-1] != 5:
            raise ValueError(f"boxes: a Tensor of shape (K, 5) is needed, not {boxes.shape}")
        return boxes
    parts = []
    for image, some in enumerate(boxes):
        if some.shape[-1] != 4:
            raise ValueError(f"boxes: Tensors of shape (L, 4) are needed, not {some.shape}")
        parts.append(ops.cat([ops.full((some.shape[0], 1), image, dtype=some.dtype), some], 1))
    return ops.cat(parts)


def bin_weights(start, size, bins, lines, sampling_ratio):
    """How much each line of pixels counts in each bin along one axis: (K, bins, lines).

    ``start`` and ``size``, (K,), are where regions begin and how long they are, in pixels. A bin
    is the mean of ``sampling_ratio`` equally spaced samples, or of one per pixel where that is
    not positive, and a sample lies between two lines. Those are then 0.5 to 1 apart, so that at
    most six come near a line, and no others need to be looked at.
    """
    step = (size / bins).reshape((-1, 1, 1, 1))
    first = start.reshape((-1, 1, 1, 1)) + step * ops.arange(bins).reshape((1, -1, 1, 1))
    line = ops.arange(lines).astype(start.dtype).reshape((1, 1, -1, 1))
    if sampling_ratio > 0:
        samples, count = ops.arange(sampling_ratio).astype(start.dtype), sampling_ratio
        apart = step / count
    else:
        count = ops.ceil(step)
        apart = ops.where(count > 0, step / ops.maximum(count, ops.ones_like(count)), 1)
        nearest = ops.floor((line - 1 - first) / apart - 0.5)
        nearest = ops.maximum(ops.minimum(nearest, count - 1), ops.zeros_like(nearest))
        samples = nearest + ops.arange(6).astype(start.dtype)
    place = first + (samples + 0.5) * apart
    counts = ops.logical_and(samples < count, ops.logical_and(place >= -1, place <= lines))
    near = ops.relu(1 - ops.abs(ops.clamp(place, 0, lines - 1) - line))
    weights = ops.where(counts, near, ops.zeros_like(near)).sum(-1)
    if sampling_ratio > 0:
        return weights / count
    return weights / ops.maximum(count, ops.ones_like(count)).squeeze(-1)


def pooled_regions(input, image, rows, columns):
    """Weighted sums of (N, C, H, W) over regions: (K, P, H) and (K, Q, W) to (K, C, P, Q).

    ``image``, (K,), says of which image. Blocks of regions bound the memory.
    """
    count, channels, height, width = input.shape
    regions, bins = rows.shape[0], rows.shape[1]
    own = (image.reshape((-1, 1)) == ops.arange(count)).astype(input.dtype)
    rows = own.reshape((-1, 1, count, 1)) * rows.unsqueeze(2)
    pixels = input.transpose(0, 2, 1, 3).reshape((count * height, channels * width))
    block = max(1, 2**25 // (bins * channels * width))
    parts = []
    for first in range(0, regions, block):
        some = columns[first : first + block]
        lines = ops.matmul(rows[first : first + block].reshape((-1, count * height)), pixels)
        lines = lines.reshape((some.shape[0], bins * channels, width))
        parts.append(ops.matmul(lines, some.transpose(0, 2, 1)))
    pooled = ops.cat(parts) if len(parts) > 1 else parts[0]
    return pooled.reshape((regions, bins, channels, -1)).transpose(0, 2, 1, 3)


def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):
    """torchvision.ops.roi_align: (N, C, H, W) and boxes to (K, C, height, width).

    Both axes are weighed on their own: two products of matrices instead of many gathers. As in
    torchvision's kernel boxes have no gradient, and samples over a pixel outside count as 0. What
    is not finite in a map makes the results of all its regions nan.
    """
    if not input.is_floating_point():
        raise TypeError(f"roi_align: maps of floating-point numbers are needed, not {input.dtype}")
    boxes = ops.stop_gradient(numbered_boxes(boxes))
    high, wide = (output_size, output_size) if isinstance(output_size, int) else output_size
    if boxes.shape[0] == 0:
        return ops.zeros((0, input.shape[1], high, wide), input.dtype)
    places = boxes if boxes.dtype == ms.float64 else boxes.astype(ms.float32)
    places = places[:, 1:] * ms.Tensor(spatial_scale, places.dtype)
    low, size = places[:, :2], places[:, 2:] - places[:, :2]
    if aligned:
        low = low - 0.5
    else:
        size = ops.maximum(size, ops.ones_like(size))
    rows = bin_weights(low[:, 1], size[:, 1], high, input.shape[2], sampling_ratio)
    columns = bin_weights(low[:, 0], size[:, 0], wide, input.shape[3], sampling_ratio)
    image = boxes[:, 0].astype(ms.int32)
    return pooled_regions(input, image, rows.astype(input.dtype), columns.astype(input.dtype))


class RoIAlign(nn.Cell):
    """torchvision.ops.RoIAlign: roi_align with settings that stay."""

    def __init__(self, output_size, spatial_scale, sampling_ratio, aligned=False):
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio
        self.aligned = aligned

    def construct(self, input, rois):
        return roi_align(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned
        )
