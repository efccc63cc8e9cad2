"""In: torch.nn's arguments of lazy layers. Out: Cells that take their input size from first use.

The first call has to run in PyNative mode: a graph cannot make Parameters.
"""

from mindspore import nn

from migrate.helpers.convolution import Conv1d, Conv2d, Conv3d
from migrate.helpers.layers import Linear
from migrate.helpers.transposed import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d


def materialize(cell, kind, size):
    """Makes a lazy cell a ``kind`` for ``size`` inputs; names and training mode stay."""
    arguments, prefix = cell.lazy_arguments, cell.__dict__.get("_names_below", "")
    training = cell.training
    cell.__class__ = kind
    kind.__init__(cell, size, **arguments)
    cell.set_train(training)
    cell.update_parameters_name(prefix)


class Unsized(nn.Cell):
    """A layer before its first call; it knows its arguments and its path, and has no weights."""

    def __init__(self, **arguments):
        super().__init__()
        self.lazy_arguments = arguments

    def update_parameters_name(self, prefix="", recurse=True):
        self._names_below = prefix
        super().update_parameters_name(prefix, recurse)


class LazyLinear(Unsized):
    """Reproduces torch.nn.LazyLinear; the first call makes it a Linear."""

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(out_features=out_features, bias=bias, dtype=dtype)

    def construct(self, x):
        materialize(self, Linear, x.shape[-1])
        return self.construct(x)


class LazyConv1d(Unsized):
    """Reproduces torch.nn.LazyConv1d; the first call makes it a Conv1d."""

    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            dtype=dtype,
        )

    def construct(self, x):
        materialize(self, Conv1d, x.shape[-2])
        return self.construct(x)


class LazyConv2d(Unsized):
    """Reproduces torch.nn.LazyConv2d; the first call makes it a Conv2d."""

    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            dtype=dtype,
        )

    def construct(self, x):
        materialize(self, Conv2d, x.shape[-3])
        return self.construct(x)


class LazyConv3d(Unsized):
    """Reproduces torch.nn.LazyConv3d; the first call makes it a Conv3d."""

    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            dtype=dtype,
        )

    def construct(self, x):
        materialize(self, Conv3d, x.shape[-4])
        return self.construct(x)


class LazyConvTranspose1d(Unsized):
    """Reproduces torch.nn.LazyConvTranspose1d; the first call makes it a ConvTranspose1d."""

    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=bias,
            dilation=dilation,
            padding_mode=padding_mode,
            dtype=dtype,
        )

    def construct(self, x):
        materialize(self, ConvTranspose1d, x.shape[-2])
        return self.construct(x)


class LazyConvTranspose2d(Unsized):
    """Reproduces torch.nn.LazyConvTranspose2d; the first call makes it a ConvTranspose2d."""

    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=bias,
            dilation=dilation,
            padding_mode=padding_mode,
            dtype=dtype,
        )

    def construct(self, x):
        materialize(self, ConvTranspose2d, x.shape[-3])
        return self.construct(x)


class LazyConvTranspose3d(Unsized):
    """Reproduces torch.nn.LazyConvTranspose3d; the first call makes it a ConvTranspose3d."""

    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=bias,
            dilation=dilation,
            padding_mode=padding_mode,
            dtype=dtype,
        )

    def construct(self, x):
        materialize(self, ConvTranspose3d, x.shape[-4])
        return self.construct(x)
