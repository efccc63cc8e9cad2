"""In: torch.nn's arguments of activations. Out: Cells that take them and compute the same."""

import mindspore as ms
from mindspore import nn, ops


class ReLU(nn.ReLU):
    """Reproduces torch.nn.ReLU; ``inplace`` has no effect."""

    def __init__(self, inplace=False):
        super().__init__()


class ReLU6(nn.ReLU6):
    """Reproduces torch.nn.ReLU6; ``inplace`` has no effect."""

    def __init__(self, inplace=False):
        super().__init__()


class SiLU(nn.SiLU):
    """Reproduces torch.nn.SiLU; ``inplace`` has no effect."""

    def __init__(self, inplace=False):
        super().__init__()


class Mish(nn.Mish):
    """Reproduces torch.nn.Mish; ``inplace`` has no effect.

    tanh(log(1 + e)) is (e^2 + 2e) / (e^2 + 2e + 2), which avoids the coarse tanh kernel.
    """

    def __init__(self, inplace=False):
        super().__init__()

    def construct(self, x):
        e = ops.exp(ops.minimum(x, ops.full_like(x, 20.0)))
        grown = e * (e + 2)
        return x * (grown / (grown + 2))


class Hardswish(nn.HSwish):
    """Reproduces torch.nn.Hardswish; ``inplace`` has no effect."""

    def __init__(self, inplace=False):
        super().__init__()

    def construct(self, x):
        return ops.hardswish(x)


class Sigmoid(nn.Sigmoid):
    """Reproduces torch.nn.Sigmoid."""


def tanh_of(x):
    """tanh from half the angle, 2t / (1 + t * t): within 1.5e-7, gradient 1.9e-7.

    The kernel on CPU is off by 1e-4 where the result is near one, and exact to rounding below
    abs(x) = 2; the formula squares the distance to one, and with it the error.
    """
    half = ops.tanh(x / 2)
    return 2 * half / (1 + half * half)


class Tanh(nn.Tanh):
    """Reproduces torch.nn.Tanh."""

    def construct(self, x):
        return tanh_of(x)


def softplus_of(x, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold."""
    scaled = x * beta
    linear = scaled > threshold
    curved = ops.log1p(ops.exp(ops.where(linear, ops.zeros_like(x), scaled))) / beta
    return ops.where(linear, x, curved)


class LogSigmoid(nn.Cell):
    """Reproduces torch.nn.LogSigmoid without overflow."""

    def construct(self, x):
        return -softplus_of(-x)


class Softsign(nn.Softsign):
    """Reproduces torch.nn.Softsign."""


class Tanhshrink(nn.Tanhshrink):
    """Reproduces torch.nn.Tanhshrink; half the angle avoids the coarse tanh kernel."""

    def construct(self, x):
        return x - tanh_of(x)


class Hardsigmoid(nn.HSigmoid):
    """Reproduces torch.nn.Hardsigmoid; ``inplace`` has no effect."""

    def __init__(self, inplace=False):
        super().__init__()

    def construct(self, x):
        return ops.hardsigmoid(x)


class Hardtanh(nn.Cell):
    """Reproduces torch.nn.Hardtanh: on a bound the gradient is 0; ``inplace`` has no effect."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value

    def construct(self, x):
        below = ops.where(x >= self.max_val, self.max_val, x)
        return ops.where(x <= self.min_val, self.min_val, below).astype(x.dtype)


class GELU(nn.GELU):
    """Reproduces torch.nn.GELU: erf by default, tanh on request."""

    def __init__(self, approximate="none"):
        super().__init__(approximate == "tanh")


class LeakyReLU(nn.LeakyReLU):
    """Reproduces torch.nn.LeakyReLU, with True as a slope of one; ``inplace`` has no effect.

    MindSpore's is a maximum: at zero its gradient is (1 + slope) / 2, torch's the slope.
    """

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__(negative_slope)
        self.negative_slope = float(negative_slope)

    def construct(self, x):
        return ops.where(x > 0, x, self.negative_slope * x)


class ELU(nn.ELU):
    """Reproduces torch.nn.ELU for any alpha; ``inplace`` has no effect."""

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha

    def construct(self, x):
        # expm1 of the positive side could overflow and poison the gradient of where
        negative = self.alpha * ops.expm1(ops.where(x > 0, 0.0, x))
        return ops.where(x > 0, x, negative)


class CELU(nn.CELU):
    """Reproduces torch.nn.CELU; ``inplace`` has no effect."""

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__(float(alpha))
        self.alpha = alpha

    def construct(self, x):
        negative = self.alpha * ops.expm1(ops.where(x > 0, 0.0, x) / self.alpha)
        return ops.where(x > 0, x, negative)


class SELU(nn.Cell):
    """Reproduces torch.nn.SELU by its formula (the kernel's gradient is wrong on CPU)."""

    def __init__(self, inplace=False):
        super().__init__()

    def construct(self, x):
        alpha, scale = 1.6732632423543772848, 1.0507009873554804934
        negative = alpha * ops.expm1(ops.where(x > 0, 0.0, x))
        return scale * ops.where(x > 0, x, negative)


class GLU(nn.Cell):
    """Reproduces torch.nn.GLU."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def construct(self, x):
        first, second = x.chunk(2, self.dim)
        return first * ops.sigmoid(second)


class PReLU(nn.Cell):
    """Reproduces torch.nn.PReLU for inputs of any rank; one slope, or one a channel (axis 1)."""

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = ms.Parameter(ops.full((num_parameters,), init, dtype=dtype or ms.float32))

    def construct(self, x):
        slope = self.weight
        if self.num_parameters > 1 and x.ndim > 2:
            slope = slope.reshape((-1,) + (1,) * (x.ndim - 2))
        if x.ndim == 0:
            slope = slope.reshape(())
        return ops.where(x > 0, x, slope * x)


class RReLU(nn.Cell):
    """Reproduces torch.nn.RReLU: a random slope in training, the mean slope otherwise."""

    def __init__(self, lower=0.125, upper=0.3333333333333333, inplace=False):
        super().__init__()
        self.lower, self.upper = lower, upper

    def construct(self, x):
        if not self.training:
            return ops.where(x > 0, x, (self.lower + self.upper) / 2 * x)
        slope = self.lower + (self.upper - self.lower) * ops.rand(x.shape)
        return ops.where(x > 0, x, slope.astype(x.dtype) * x)


class Softplus(nn.Cell):
    """Reproduces torch.nn.Softplus: linear where beta * x is above the threshold."""

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def construct(self, x):
        return softplus_of(x, self.beta, self.threshold)


class Hardshrink(nn.HShrink):
    """Reproduces torch.nn.Hardshrink."""

    def __init__(self, lambd=0.5):
        super().__init__(lambd)
        self.lambd = lambd

    def construct(self, x):
        return ops.where(ops.abs(x) > self.lambd, x, ops.zeros_like(x))


class Softshrink(nn.SoftShrink):
    """Reproduces torch.nn.Softshrink."""

    def __init__(self, lambd=0.5):
        super().__init__(lambd)
        self.lambd = lambd

    def construct(self, x):
        return ops.where(ops.abs(x) > self.lambd, x - ops.sign(x) * self.lambd, ops.zeros_like(x))


class Threshold(nn.Cell):
    """Reproduces torch.nn.Threshold; ``inplace`` has no effect."""

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value = threshold, value

    def construct(self, x):
        return ops.where(x > self.threshold, x, ops.full_like(x, self.value))
