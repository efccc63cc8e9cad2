"""In: torch.nn's padding arguments. Out: Cells that pad the last axes, batched or not."""

from mindspore import nn, ops

from migrate.helpers.convolution import per_axis, reflect_volume, wrap_images
from migrate.helpers.padding_functional import pad_with


class EdgePad(nn.Cell):
    """Pads the last ``axes`` axes by (before, after) of each, the last axis first, as torch does.

    Negative padding crops. ``mode`` is constant, reflect, replicate or circular.
    """

    def __init__(self, padding, axes, mode, value=0):
        super().__init__()
        self.padding, self.axes, self.mode = per_axis(padding, 2 * axes), axes, mode
        self.value, self.grows = value, min(self.padding) >= 0 and max(self.padding) > 0

    def construct(self, x):
        if self.mode == "constant":
            if self.grows and x.size > 0:  # graph mode counts each step of pad_with as a call
                return ops.pad(x, self.padding, "constant", self.value)
            return pad_with(x, self.padding, self.value)
        pairs = [self.padding[i : i + 2] for i in range(2 * self.axes - 2, -1, -2)]
        if self.mode == "circular":
            return wrap_images(x, pairs)
        if self.mode == "reflect" and self.axes == 3:
            return reflect_volume(x, pairs)
        return ops.pad(x, self.padding, self.mode)


def edge_padding(cell):
    """The attribute ``padding`` of a layer as torch has it: (before, after) of the last axis first.

    MindSpore's own ReflectionPad keeps pairs, the first axis first.
    """
    if isinstance(cell.padding[0], int):
        return cell.padding
    return tuple([n for pair in reversed(cell.padding) for n in pair])


class ConstantPad1d(EdgePad):
    """Reproduces torch.nn.ConstantPad1d."""

    def __init__(self, padding, value):
        super().__init__(padding, 1, "constant", value)


class ConstantPad2d(EdgePad):
    """Reproduces torch.nn.ConstantPad2d."""

    def __init__(self, padding, value):
        super().__init__(padding, 2, "constant", value)


class ConstantPad3d(EdgePad):
    """Reproduces torch.nn.ConstantPad3d."""

    def __init__(self, padding, value):
        super().__init__(padding, 3, "constant", value)


class ZeroPad1d(EdgePad):
    """Reproduces torch.nn.ZeroPad1d."""

    def __init__(self, padding):
        super().__init__(padding, 1, "constant")


class ZeroPad2d(EdgePad):
    """Reproduces torch.nn.ZeroPad2d."""

    def __init__(self, padding):
        super().__init__(padding, 2, "constant")


class ZeroPad3d(EdgePad):
    """Reproduces torch.nn.ZeroPad3d."""

    def __init__(self, padding):
        super().__init__(padding, 3, "constant")


class ReflectionPad1d(EdgePad):
    """Reproduces torch.nn.ReflectionPad1d."""

    def __init__(self, padding):
        super().__init__(padding, 1, "reflect")


class ReflectionPad2d(EdgePad):
    """Reproduces torch.nn.ReflectionPad2d."""

    def __init__(self, padding):
        super().__init__(padding, 2, "reflect")


class ReflectionPad3d(EdgePad):
    """Reproduces torch.nn.ReflectionPad3d."""

    def __init__(self, padding):
        super().__init__(padding, 3, "reflect")


class ReplicationPad1d(EdgePad):
    """Reproduces torch.nn.ReplicationPad1d."""

    def __init__(self, padding):
        super().__init__(padding, 1, "replicate")


class ReplicationPad2d(EdgePad):
    """Reproduces torch.nn.ReplicationPad2d."""

    def __init__(self, padding):
        super().__init__(padding, 2, "replicate")


class ReplicationPad3d(EdgePad):
    """Reproduces torch.nn.ReplicationPad3d."""

    def __init__(self, padding):
        super().__init__(padding, 3, "replicate")


class CircularPad1d(EdgePad):
    """Reproduces torch.nn.CircularPad1d."""

    def __init__(self, padding):
        super().__init__(padding, 1, "circular")


class CircularPad2d(EdgePad):
    """Reproduces torch.nn.CircularPad2d."""

    def __init__(self, padding):
        super().__init__(padding, 2, "circular")


class CircularPad3d(EdgePad):
    """Reproduces torch.nn.CircularPad3d."""

    def __init__(self, padding):
        super().__init__(padding, 3, "circular")
