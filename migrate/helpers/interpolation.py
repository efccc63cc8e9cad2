"""In: (batch, channels, ...) tensors and a size or factor. Out: torch's interpolation of them."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.convolution import per_axis


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None,
    recompute_scale_factor=None, antialias=False,
):  # fmt: skip
    """torch.nn.functional.interpolate: every mode, by size or factor, antialias included."""
    axes = input.ndim - 2
    lengths = input.shape[2:]
    factors = None if scale_factor is None else per_axis(scale_factor, axes)
    if size is not None:
        sizes = per_axis(size, axes)
    else:
        sizes = tuple([int(n * f) for n, f in zip(lengths, factors)])
    if mode == "area":
        return area(input, sizes)
    pixels = input.dtype == ms.uint8 and mode not in ("nearest", "nearest-exact")
    for axis in range(axes)[::-1] if pixels else range(axes):
        n, m = lengths[axis], sizes[axis]
        ratio = source_step(n, m, align_corners)
        if factors is not None and not recompute_scale_factor and not align_corners:
            ratio = 1.0 / factors[axis]
        if n != m or ratio != 1.0:
            values = input.astype(ms.float32) if pixels else input
            values = resampled(values, axis + 2, m, ratio, mode, align_corners, antialias)
            # torch rounds pixels behind each axis, the last axis first
            input = ops.floor(values + 0.5).clamp(0, 255).astype(ms.uint8) if pixels else values
    return input


def source_step(n, m, align_corners):
    """How far in the source one step in the result goes."""
    if align_corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return n / m


def area(input, sizes):
    """Adaptive average pooling to ``sizes``, which is what torch's mode 'area' is."""
    if len(sizes) == 1:
        return ops.adaptive_avg_pool2d(input.unsqueeze(2), (1, sizes[0])).squeeze(2)
    if len(sizes) == 2:
        return ops.adaptive_avg_pool2d(input, sizes)
    return ops.adaptive_avg_pool3d(input, sizes)


def resampled(x, axis, count, ratio, mode, align_corners, antialias):
    """``x`` with ``count`` places along ``axis``, ``ratio`` apart in the source."""
    n = x.shape[axis]
    steps = ops.arange(count).astype(ms.float32)
    if mode == "nearest":
        return x.index_select(axis, whole(ops.floor(steps * ratio), n))
    if mode == "nearest-exact":
        return x.index_select(axis, whole(ops.floor((steps + 0.5) * ratio), n))
    if antialias:
        return filtered(x, axis, steps, ratio, mode)
    place = steps * ratio if align_corners else (steps + 0.5) * ratio - 0.5
    if mode == "bicubic":
        return cubic(x, axis, place)
    place = ops.maximum(place, 0.0)
    low = ops.floor(place)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    share = (place - low).reshape(shape).astype(x.dtype)
    below = x.index_select(axis, whole(low, n))
    return below * (1 - share) + x.index_select(axis, whole(low + 1, n)) * share


def whole(place, n):
    """Places as int64 indices below ``n``."""
    return ops.clamp(place, 0, n - 1).astype(ms.int64)


def cubic(x, axis, place):
    """Bicubic interpolation along ``axis`` with torch's a = -0.75."""
    low = ops.floor(place)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    result = 0.0
    for tap in (-1, 0, 1, 2):
        weight = cubic_weight(ops.abs(place - low - tap), -0.75)
        taken = x.index_select(axis, whole(low + tap, x.shape[axis]))
        result = result + taken * weight.reshape(shape).astype(x.dtype)
    return result


def cubic_weight(distance, a):
    """Keys' cubic convolution kernel at a distance from its centre."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return ops.where(distance <= 1, near, ops.where(distance < 2, far, ops.zeros_like(far)))


def filtered(x, axis, steps, ratio, mode):
    """Antialiased resampling along ``axis``: a product with the normalised filter matrix."""
    stretch = max(ratio, 1.0)
    places = ops.arange(x.shape[axis]).astype(ms.float32).reshape((-1, 1))
    distance = ops.abs(places + 0.5 - (steps + 0.5) * ratio) / stretch
    weights = ops.relu(1 - distance) if mode != "bicubic" else cubic_weight(distance, -0.5)
    weights = (weights / weights.sum(0, keepdims=True)).astype(x.dtype)
    return ops.matmul(x.swapaxes(axis, -1), weights).swapaxes(axis, -1)
