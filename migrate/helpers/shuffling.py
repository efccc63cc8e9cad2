"""In: torch.nn's arguments of layers that move elements. Out: Cells that move them the same way."""

from mindspore import nn, ops

from migrate.helpers.convolution import per_axis


class PixelShuffle(nn.Cell):
    """Reproduces torch.nn.PixelShuffle for (..., C * r * r, H, W)."""

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def construct(self, x):
        r, lead = self.upscale_factor, x.shape[:-3]
        channels, height, width = x.shape[-3] // (r * r), x.shape[-2], x.shape[-1]
        blocks = x.reshape((-1, channels, r, r, height, width)).transpose((0, 1, 4, 2, 5, 3))
        return blocks.reshape((*lead, channels, height * r, width * r))


class PixelUnshuffle(nn.Cell):
    """Reproduces torch.nn.PixelUnshuffle for (..., C, H * r, W * r)."""

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def construct(self, x):
        r, lead, channels = self.downscale_factor, x.shape[:-3], x.shape[-3]
        height, width = x.shape[-2] // r, x.shape[-1] // r
        blocks = x.reshape((-1, channels, height, r, width, r)).transpose((0, 1, 3, 5, 2, 4))
        return blocks.reshape((*lead, channels * r * r, height, width))


class ChannelShuffle(nn.Cell):
    """Reproduces torch.nn.ChannelShuffle for (N, C, ...)."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def construct(self, x):
        parts = x.reshape((x.shape[0], self.groups, x.shape[1] // self.groups, -1))
        return parts.swapaxes(1, 2).reshape(x.shape)


def slid(size, kernel, dilation, padding, stride):
    """How many windows fit along an axis of ``size``."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


class Unfold(nn.Cell):
    """Reproduces torch.nn.Unfold for (N, C, H, W) and (C, H, W) by strided slices."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation = per_axis(kernel_size, 2), per_axis(dilation, 2)
        self.padding, self.stride = per_axis(padding, 2), per_axis(stride, 2)

    def construct(self, x):
        images = x if x.ndim == 4 else x.expand_dims(0)
        (kh, kw), (dh, dw), (sh, sw) = self.kernel_size, self.dilation, self.stride
        ph, pw = self.padding
        rows, columns = slid(x.shape[-2], kh, dh, ph, sh), slid(x.shape[-1], kw, dw, pw, sw)
        # room below and to the right, so that the strided pick below is a plain reshape
        images = ops.pad(images, (pw, pw + sw, ph, ph + sh))
        parts = []
        for i in range(kh):
            for j in range(kw):
                block = images.narrow(2, i * dh, rows * sh).narrow(3, j * dw, columns * sw)
                block = block.reshape((*images.shape[:2], rows, sh, columns, sw))
                parts.append(block[:, :, :, 0, :, 0])
        out = ops.stack(parts, 2).reshape((images.shape[0], -1, rows * columns))
        return out if x.ndim == 4 else out.squeeze(0)


class Fold(nn.Cell):
    """Reproduces torch.nn.Fold for (N, C * kh * kw, L) and (C * kh * kw, L): sums of windows."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.kernel_size = per_axis(output_size, 2), per_axis(kernel_size, 2)
        self.dilation, self.padding = per_axis(dilation, 2), per_axis(padding, 2)
        self.stride = per_axis(stride, 2)

    def construct(self, x):
        columns_of = x if x.ndim == 3 else x.expand_dims(0)
        (height, width), (kh, kw) = self.output_size, self.kernel_size
        (dh, dw), (sh, sw), (ph, pw) = self.dilation, self.stride, self.padding
        rows, columns = slid(height, kh, dh, ph, sh), slid(width, kw, dw, pw, sw)
        parts = columns_of.reshape((columns_of.shape[0], -1, kh, kw, rows, columns))
        total = 0
        for i in range(kh):
            for j in range(kw):
                top, left = i * dh, j * dw
                spread = self._spread(parts[:, :, i, j], sh, sw)
                below = height + 2 * ph - top - spread.shape[2]
                right = width + 2 * pw - left - spread.shape[3]
                total = total + ops.pad(spread, (left, right, top, below))
        out = total[:, :, ph : ph + height, pw : pw + width]
        return out if x.ndim == 3 else out.squeeze(0)

    def _spread(self, x, sh, sw):
        """x with sh - 1 zero rows and sw - 1 zero columns between its elements."""
        rows, columns = x.shape[2], x.shape[3]
        if sh > 1:
            x = ops.pad(x.expand_dims(3), (0, 0, 0, sh - 1))
            x = x.reshape((*x.shape[:2], rows * sh, columns))[:, :, : (rows - 1) * sh + 1]
        if sw > 1:
            x = ops.pad(x.expand_dims(4), (0, sw - 1))
            x = x.reshape((*x.shape[:3], columns * sw))[:, :, :, : (columns - 1) * sw + 1]
        return x


class MaxUnpool2d(nn.Cell):
    """Reproduces torch.nn.MaxUnpool2d: values go to the places that pooling gave, else zero."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.padding = per_axis(kernel_size, 2), per_axis(padding, 2)
        self.stride = self.kernel_size if stride is None else per_axis(stride, 2)

    def construct(self, x, indices, output_size=None):
        if output_size is None:
            size = [
                (x.shape[i - 2] - 1) * self.stride[i] - 2 * self.padding[i] + self.kernel_size[i]
                for i in range(2)
            ]
        else:
            size = output_size[-2:]
        lead = x.shape[:-2]
        rows = x.reshape((-1, x.shape[-2] * x.shape[-1]))
        places = indices.reshape(rows.shape)
        empty = ops.zeros((rows.shape[0], size[0] * size[1]), x.dtype)
        out = ops.tensor_scatter_elements(empty, places, rows, 1)
        return out.reshape((*lead, size[0], size[1]))
