"""In: torch.nn's arguments of fractional pooling. Out: Cells with torch's pseudo-random windows."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.convolution import per_axis


def window_starts(sample, size, kernel, count):
    """First places (N, C, count) of windows along an axis of ``size``, from samples (N, C).

    Graham 2014, section 2: floor((i + u) * alpha) - floor(u * alpha); the last ends the axis.
    """
    last = ops.full((*sample.shape, 1), size - kernel, dtype=ms.int32)
    if count == 1:
        return last
    alpha = (size - kernel) / (count - 1)
    u = sample.expand_dims(2)
    steps = ops.arange(count - 1).astype(sample.dtype)
    starts = ops.floor((steps + u) * alpha) - ops.floor(u * alpha)
    return ops.cat((starts.astype(ms.int32), last), 2)


def window_elements(x, starts, kernel, axis):
    """The elements of the windows along an axis, one window after another."""
    places = starts.expand_dims(3) + ops.arange(kernel).astype(ms.int32)
    places = places.reshape((*starts.shape[:2], -1))
    shape = x.shape[:2] + (1,) * (axis - 2) + (places.shape[2],) + (1,) * (x.ndim - 1 - axis)
    whole = (*x.shape[:axis], places.shape[2], *x.shape[axis + 1 :])
    return ops.gather_elements(x, axis, places.reshape(shape).broadcast_to(whole))


def wanted_size(output_size, output_ratio, shape, axes):
    """The size of the result: as given, or the ratio of the input's."""
    if output_size is not None:
        return per_axis(output_size, axes)
    ratio = per_axis(output_ratio, axes)
    return tuple([int(shape[i - axes] * ratio[i]) for i in range(axes)])


class FractionalMaxPool2d(nn.Cell):
    """Reproduces torch.nn.FractionalMaxPool2d, without indices; samples are (N, C, 2): W, H."""

    def __init__(
        self,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        super().__init__()
        if return_indices:
            raise ValueError("FractionalMaxPool2d: return_indices is not reproduced")
        self.kernel_size, self.output_size = per_axis(kernel_size, 2), output_size
        self.output_ratio = output_ratio
        if _random_samples is None:
            self._random_samples = None
        else:
            self.register_buffer("_random_samples", _random_samples)

    def construct(self, x):
        images = x if x.ndim == 4 else x.expand_dims(0)
        size = wanted_size(self.output_size, self.output_ratio, x.shape, 2)
        samples = self._random_samples
        if samples is None:
            samples = ops.rand((*images.shape[:2], 2)).astype(x.dtype)
        (kh, kw), (height, width) = self.kernel_size, images.shape[2:]
        rows = window_starts(samples[:, :, 1], height, kh, size[0])
        columns = window_starts(samples[:, :, 0], width, kw, size[1])
        parts = window_elements(window_elements(images, rows, kh, 2), columns, kw, 3)
        out = parts.reshape((*images.shape[:2], size[0], kh, size[1], kw)).amax((3, 5))
        return out if x.ndim == 4 else out.squeeze(0)


class FractionalMaxPool3d(nn.Cell):
    """Reproduces torch.nn.FractionalMaxPool3d, without indices; samples are (N, C, 3): T, H, W."""

    def __init__(
        self,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        super().__init__()
        if return_indices:
            raise ValueError("FractionalMaxPool3d: return_indices is not reproduced")
        self.kernel_size, self.output_size = per_axis(kernel_size, 3), output_size
        self.output_ratio = output_ratio
        if _random_samples is None:
            self._random_samples = None
        else:
            self.register_buffer("_random_samples", _random_samples)

    def construct(self, x):
        volumes = x if x.ndim == 5 else x.expand_dims(0)
        size = wanted_size(self.output_size, self.output_ratio, x.shape, 3)
        samples = self._random_samples
        if samples is None:
            samples = ops.rand((*volumes.shape[:2], 3)).astype(x.dtype)
        parts, shape = volumes, volumes.shape[:2]
        for i in range(3):
            kernel = self.kernel_size[i]
            starts = window_starts(samples[:, :, i], volumes.shape[2 + i], kernel, size[i])
            parts, shape = window_elements(parts, starts, kernel, 2 + i), (*shape, size[i], kernel)
        out = parts.reshape(shape).amax((3, 5, 7))
        return out if x.ndim == 5 else out.squeeze(0)
