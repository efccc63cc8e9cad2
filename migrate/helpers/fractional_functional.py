"""In: arguments of fractional pooling. Out: torch.nn.functional's pools of random windows."""

import math

import mindspore as ms
from mindspore import ops

from migrate.helpers.convolution import per_axis
from migrate.helpers.fractional import wanted_size, window_elements, window_starts


def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
    _random_samples=None,
):  # fmt: skip
    """torch.nn.functional.fractional_max_pool2d; samples are (N, C, 2): width, height."""
    samples = _random_samples
    if samples is not None:
        samples = ops.flip(samples, (2,))
    return fractional_pool(
        input, kernel_size, output_size, output_ratio, return_indices, samples, 2
    )


def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
    _random_samples=None,
):  # fmt: skip
    """torch.nn.functional.fractional_max_pool3d; samples are (N, C, 3): depth, height, width."""
    return fractional_pool(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 3
    )


def fractional_pool(input, kernel_size, output_size, output_ratio, return_indices, samples, axes):
    """The largest element of each window, and its int64 place in its channel on request."""
    x = input if input.ndim == axes + 2 else input.unsqueeze(0)
    kernel = per_axis(kernel_size, axes)
    size = wanted_size(output_size, output_ratio, x.shape, axes)
    if x.size == 0:
        empty = ops.zeros((*x.shape[:2], *size), x.dtype)
        return (empty, empty.astype(ms.int64)) if return_indices else empty
    if samples is None:
        samples = ops.rand((*x.shape[:2], axes)).astype(x.dtype)
    places = ops.arange(math.prod(x.shape[2:])).astype(ms.int32)
    places = places.reshape((1, 1, *x.shape[2:])).broadcast_to(x.shape)
    values, shape = x, x.shape[:2]
    for i in range(axes):
        starts = window_starts(samples[:, :, i], x.shape[2 + i], kernel[i], size[i])
        values = window_elements(values, starts, kernel[i], 2 + i)
        places = window_elements(places, starts, kernel[i], 2 + i)
        shape = (*shape, size[i], kernel[i])
    order = (0, 1, *range(2, 2 + 2 * axes, 2), *range(3, 3 + 2 * axes, 2))
    values = values.reshape(shape).permute(order).reshape((*x.shape[:2], *size, -1))
    found = ops.argmax(values, -1, True)
    result = ops.gather_elements(values, values.ndim - 1, found).squeeze(-1)
    if input.ndim < axes + 2:
        result = result.squeeze(0)
    if not return_indices:
        return result
    places = places.reshape(shape).permute(order).reshape(values.shape)
    places = ops.gather_elements(places, values.ndim - 1, found).squeeze(-1).astype(ms.int64)
    return result, places if input.ndim == axes + 2 else places.squeeze(0)
