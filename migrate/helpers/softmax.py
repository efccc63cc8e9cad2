"""In: torch.nn's arguments of the softmax family. Out: Cells with torch's implicit axis."""

from mindspore import nn, ops


def implicit_dim(ndim):
    """The axis that torch takes for softmax when ``dim`` is None."""
    return 0 if ndim in (0, 1, 3) else 1


def softmax_over(input, dim, dtype=None):
    """torch.softmax along ``dim``, without MindSpore's kernel where that has one element.

    MindSpore 2.10 in PyNative: when the first softmax that a process differentiates goes over an
    axis of one element, all later gradients of softmax for that rank and axis are wrong.
    """
    x = input if dtype is None else input.astype(dtype)
    return ops.exp(x - x) if x.ndim == 0 or x.shape[dim] == 1 else ops.softmax(x, dim)


class Softmax(nn.Softmax):
    """Reproduces torch.nn.Softmax; without ``dim`` torch's implicit axis is taken."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def construct(self, x):
        dim = implicit_dim(x.ndim) if self.dim is None else self.dim
        return softmax_over(x, dim)


class LogSoftmax(nn.Cell):
    """Reproduces torch.nn.LogSoftmax; without ``dim`` torch's implicit axis is taken."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def construct(self, x):
        dim = implicit_dim(x.ndim) if self.dim is None else self.dim
        if x.ndim == 0:  # the kernel's gradient hangs there
            return ops.zeros_like(x)
        shifted = x - ops.stop_gradient(ops.amax(x, dim, keepdims=True))
        return shifted - ops.log(ops.exp(shifted).sum(dim, keepdims=True))


class Softmin(nn.Cell):
    """Reproduces torch.nn.Softmin; without ``dim`` torch's implicit axis is taken."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def construct(self, x):
        dim = implicit_dim(x.ndim) if self.dim is None else self.dim
        return softmax_over(-x, dim)


class Softmax2d(nn.Cell):
    """Reproduces torch.nn.Softmax2d for (N, C, H, W) and (C, H, W)."""

    def construct(self, x):
        return softmax_over(x, -3)
