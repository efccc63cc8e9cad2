"""In: torch.nn's pooling arguments. Out: pooling Cells with torch's windows and unbatched input."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.convolution import conv_pads, per_axis
from migrate.helpers.pooling_functional import lp_pool1d, lp_pool2d, lp_pool3d


def flat_windows(x, axes):
    """x as (N, C, ...) with ``axes`` trailing axes: an unbatched input gets a batch of one."""
    return x if x.ndim == axes + 2 else x.expand_dims(0)


class MaxPool1d(nn.Cell):
    """Reproduces torch.nn.MaxPool1d; indices are int64."""

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__()
        self.kernel_size, self.padding = per_axis(kernel_size, 1)[0], per_axis(padding, 1)[0]
        self.stride = self.kernel_size if stride is None else per_axis(stride, 1)[0]
        self.dilation, self.return_indices = per_axis(dilation, 1)[0], return_indices
        self.ceil_mode = ceil_mode

    def construct(self, x):
        rows = flat_windows(x, 1).expand_dims(2)
        out, places = ops.max_pool2d(
            rows,
            (1, self.kernel_size),
            (1, self.stride),
            (0, self.padding),
            (1, self.dilation),
            return_indices=True,
            ceil_mode=self.ceil_mode,
        )
        out, places = out.squeeze(2), places.squeeze(2)
        if x.ndim == 2:
            out, places = out.squeeze(0), places.squeeze(0)
        return (out, places) if self.return_indices else out


class MaxPool2d(nn.MaxPool2d):
    """Reproduces torch.nn.MaxPool2d; indices are int64."""

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__(per_axis(kernel_size, 2))
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def construct(self, x):
        out, places = ops.max_pool2d(
            flat_windows(x, 2),
            per_axis(self.kernel_size, 2),
            per_axis(self.stride, 2),
            per_axis(self.padding, 2),
            per_axis(self.dilation, 2),
            return_indices=True,
            ceil_mode=self.ceil_mode,
        )
        if x.ndim == 3:
            out, places = out.squeeze(0), places.squeeze(0)
        return (out, places) if self.return_indices else out


class MaxPool3d(nn.Cell):
    """Reproduces torch.nn.MaxPool3d; indices are int64."""

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def construct(self, x):
        out, places = ops.max_pool3d(
            flat_windows(x, 3),
            per_axis(self.kernel_size, 3),
            per_axis(self.stride, 3),
            per_axis(self.padding, 3),
            per_axis(self.dilation, 3),
            return_indices=True,
            ceil_mode=self.ceil_mode,
        )
        if x.ndim == 4:
            out, places = out.squeeze(0), places.squeeze(0)
        return (out, places) if self.return_indices else out


class AvgPool1d(nn.Cell):
    """Reproduces torch.nn.AvgPool1d."""

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
    ):
        super().__init__()
        self.kernel_size, self.padding = per_axis(kernel_size, 1)[0], per_axis(padding, 1)[0]
        self.stride = self.kernel_size if stride is None else per_axis(stride, 1)[0]
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def construct(self, x):
        rows = flat_windows(x, 1).expand_dims(2)
        out = ops.avg_pool2d(
            rows,
            (1, self.kernel_size),
            (1, self.stride),
            (0, 0, self.padding, self.padding),
            self.ceil_mode,
            self.count_include_pad,
        ).squeeze(2)
        return out if x.ndim == 3 else out.squeeze(0)


class AvgPool2d(nn.AvgPool2d):
    """Reproduces torch.nn.AvgPool2d."""

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__(per_axis(kernel_size, 2))
        self.pads = conv_pads(padding, 1, 1, 2)
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def construct(self, x):
        out = ops.avg_pool2d(
            flat_windows(x, 2),
            per_axis(self.kernel_size, 2),
            per_axis(self.stride, 2),
            self.pads,
            self.ceil_mode,
            self.count_include_pad,
            0 if self.divisor_override is None else self.divisor_override,
        )
        return out if x.ndim == 4 else out.squeeze(0)


class AvgPool3d(nn.Cell):
    """Reproduces torch.nn.AvgPool3d."""

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__()
        self.pads = conv_pads(padding, 1, 1, 3)
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def construct(self, x):
        out = ops.avg_pool3d(
            flat_windows(x, 3),
            per_axis(self.kernel_size, 3),
            per_axis(self.stride, 3),
            self.pads,
            self.ceil_mode,
            self.count_include_pad,
            0 if self.divisor_override is None else self.divisor_override,
        )
        return out if x.ndim == 5 else out.squeeze(0)


class AdaptiveAvgPool1d(nn.Cell):
    """Reproduces torch.nn.AdaptiveAvgPool1d for (N, C, L) and (C, L)."""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = per_axis(output_size, 1)[0]

    def construct(self, x):
        size = x.shape[-1] if self.output_size is None else self.output_size
        return ops.adaptive_avg_pool2d(x.expand_dims(-2), (1, size)).squeeze(-2)


class AdaptiveMaxPool1d(nn.Cell):
    """Reproduces torch.nn.AdaptiveMaxPool1d; indices are int64."""

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size, self.return_indices = per_axis(output_size, 1)[0], return_indices

    def construct(self, x):
        size = x.shape[-1] if self.output_size is None else self.output_size
        out, places = ops.adaptive_max_pool2d(x.expand_dims(-2), (1, size), True)
        return (out.squeeze(-2), places.squeeze(-2)) if self.return_indices else out.squeeze(-2)


class AdaptiveAvgPool2d(nn.AdaptiveAvgPool2d):
    """Reproduces torch.nn.AdaptiveAvgPool2d; the size may be a list."""

    def __init__(self, output_size):
        super().__init__(tuple(output_size) if isinstance(output_size, list) else output_size)


class AdaptiveAvgPool3d(nn.AdaptiveAvgPool3d):
    """Reproduces torch.nn.AdaptiveAvgPool3d; the size may be a list."""

    def __init__(self, output_size):
        super().__init__(tuple(output_size) if isinstance(output_size, list) else output_size)


class AdaptiveMaxPool2d(nn.Cell):
    """Reproduces torch.nn.AdaptiveMaxPool2d; indices are int64."""

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size, self.return_indices = per_axis(output_size, 2), return_indices

    def construct(self, x):
        return ops.adaptive_max_pool2d(x, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(nn.Cell):
    """Reproduces torch.nn.AdaptiveMaxPool3d; indices are int64."""

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size, self.return_indices = per_axis(output_size, 3), return_indices

    def construct(self, x):
        given, axes = self.output_size, x.shape[-3:]
        size = [axes[i] if given[i] is None else given[i] for i in range(3)]
        out, places = ops.adaptive_max_pool3d(x, tuple(size), True)
        return (out, places.astype(ms.int64)) if self.return_indices else out


class LPPool(nn.Cell):
    """Reproduces torch.nn.modules.pooling._LPPoolNd: (sum of x^p)^(1/p) over each window."""

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type, self.ceil_mode = norm_type, ceil_mode
        self.kernel_size, self.stride = kernel_size, stride


class LPPool1d(LPPool):
    """Reproduces torch.nn.LPPool1d for (N, C, L) and (C, L)."""

    def construct(self, x):
        return lp_pool1d(x, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(LPPool):
    """Reproduces torch.nn.LPPool2d for (N, C, H, W) and (C, H, W)."""

    def construct(self, x):
        return lp_pool2d(x, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(LPPool):
    """Reproduces torch.nn.LPPool3d for (N, C, D, H, W) and (C, D, H, W)."""

    def construct(self, x):
        return lp_pool3d(x, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)
