"""In: parameters of a distribution as tensors or numbers. Out: torch.distributions in MindSpore.

PyNative mode only: a graph does not make objects from tensors, and says so. Samples are drawn by
MindSpore's generator, so they differ from torch's; densities, moments and gradients are torch's.
"""

import math

import mindspore as ms
from mindspore import ops


def as_tensors(*values):
    """Numbers and tensors as float tensors of one shape."""
    given = [v for v in values if isinstance(v, ms.Tensor)]
    dtype = given[0].dtype if given else ms.float32
    tensors = [v if isinstance(v, ms.Tensor) else ms.Tensor(v, dtype) for v in values]
    total = tensors[0]
    for one in tensors[1:]:
        total = total + one
    return tuple([one.broadcast_to(total.shape) for one in tensors])


class Distribution:
    """Reproduces torch.distributions.Distribution: shapes, and what follows from the others."""

    has_rsample = False

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)

    def shape_of(self, sample_shape):
        """The shape of a sample."""
        return tuple(sample_shape) + self.batch_shape + self.event_shape

    @property
    def stddev(self):
        return ops.sqrt(self.variance)

    def sample(self, sample_shape=()):
        return ops.stop_gradient(self.rsample(sample_shape))

    def rsample(self, sample_shape=()):
        raise NotImplementedError(f"{type(self).__name__} has no rsample")

    def perplexity(self):
        return ops.exp(self.entropy())


class Normal(Distribution):
    """Reproduces torch.distributions.Normal(loc, scale)."""

    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = as_tensors(loc, scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return ops.square(self.scale)

    def rsample(self, sample_shape=()):
        noise = ops.standard_normal(self.shape_of(sample_shape)).astype(self.loc.dtype)
        return self.loc + noise * self.scale

    def log_prob(self, value):
        scaled = ops.square(value - self.loc) / (2 * self.variance)
        return -scaled - ops.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value):
        return 0.5 * (1 + ops.erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * ops.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + ops.log(self.scale)


class LogNormal(Normal):
    """Reproduces torch.distributions.LogNormal(loc, scale)."""

    @property
    def mean(self):
        return ops.exp(self.loc + ops.square(self.scale) / 2)

    @property
    def mode(self):
        return ops.exp(self.loc - ops.square(self.scale))

    @property
    def variance(self):
        wide = ops.square(self.scale)
        return (ops.exp(wide) - 1) * ops.exp(2 * self.loc + wide)

    @property
    def stddev(self):
        return ops.sqrt(self.variance)

    def rsample(self, sample_shape=()):
        noise = ops.standard_normal(self.shape_of(sample_shape)).astype(self.loc.dtype)
        return ops.exp(self.loc + noise * self.scale)

    def log_prob(self, value):
        scaled = ops.square(ops.log(value) - self.loc) / (2 * ops.square(self.scale))
        constant = math.log(math.sqrt(2 * math.pi))
        return -scaled - ops.log(self.scale) - constant - ops.log(value)

    def cdf(self, value):
        return super().cdf(ops.log(value))

    def icdf(self, value):
        return ops.exp(super().icdf(value))

    def entropy(self):
        return super().entropy() + self.loc


class Laplace(Distribution):
    """Reproduces torch.distributions.Laplace(loc, scale)."""

    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = as_tensors(loc, scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return 2 * ops.square(self.scale)

    def rsample(self, sample_shape=()):
        u = ops.rand(self.shape_of(sample_shape)).astype(self.loc.dtype) - 0.5
        inner = ops.log1p(-2 * ops.clamp(ops.abs(u), max=0.5 - 1e-7))
        return self.loc - self.scale * ops.sign(u) * inner

    def log_prob(self, value):
        return -ops.log(2 * self.scale) - ops.abs(value - self.loc) / self.scale

    def cdf(self, value):
        off = value - self.loc
        return 0.5 - 0.5 * ops.sign(off) * ops.expm1(-ops.abs(off) / self.scale)

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * ops.sign(term) * ops.log1p(-2 * ops.abs(term))

    def entropy(self):
        return 1 + ops.log(2 * self.scale)


class Uniform(Distribution):
    """Reproduces torch.distributions.Uniform(low, high); values outside have probability 0."""

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = as_tensors(low, high)
        super().__init__(self.low.shape)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def variance(self):
        return ops.square(self.high - self.low) / 12

    def rsample(self, sample_shape=()):
        draws = ops.rand(self.shape_of(sample_shape)).astype(self.low.dtype)
        return self.low + draws * (self.high - self.low)

    def log_prob(self, value):
        inside = ops.logical_and(self.low <= value, self.high > value)
        return ops.log(inside.astype(self.low.dtype)) - ops.log(self.high - self.low)

    def cdf(self, value):
        return ops.clamp((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return ops.log(self.high - self.low)


class Exponential(Distribution):
    """Reproduces torch.distributions.Exponential(rate)."""

    has_rsample = True

    def __init__(self, rate, validate_args=None):
        (self.rate,) = as_tensors(rate)
        super().__init__(self.rate.shape)

    @property
    def mean(self):
        return 1 / self.rate

    @property
    def mode(self):
        return ops.zeros_like(self.rate)

    @property
    def stddev(self):
        return 1 / self.rate

    @property
    def variance(self):
        return 1 / ops.square(self.rate)

    def rsample(self, sample_shape=()):
        draws = ops.rand(self.shape_of(sample_shape)).astype(self.rate.dtype)
        return -ops.log1p(-draws) / self.rate

    def log_prob(self, value):
        return ops.log(self.rate) - self.rate * value

    def cdf(self, value):
        return 1 - ops.exp(-self.rate * value)

    def icdf(self, value):
        return -ops.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - ops.log(self.rate)
