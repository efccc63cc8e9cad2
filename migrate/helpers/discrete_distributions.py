"""In: probabilities or logits. Out: torch.distributions of choices, in MindSpore; PyNative mode."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.distributions import Distribution, as_tensors
from migrate.helpers.loss_functional import binary_cross_entropy_with_logits


def one_of(probs, logits):
    """Raises ValueError unless exactly one of the two is given, as in torch."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def kept_inside(probs):
    """Probabilities at least one rounding step away from 0 and 1, as torch clamps them."""
    step = 2.220446049250313e-16 if probs.dtype == ms.float64 else 1.1920928955078125e-07
    return ops.clamp(probs, step, 1 - step)


class Categorical(Distribution):
    """Reproduces torch.distributions.Categorical: draws places on the last axis."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        one_of(probs, logits)
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdims=True)
            self.logits = ops.log(kept_inside(self.probs))
        else:
            high = ops.stop_gradient(ops.amax(logits, -1, keepdims=True))
            shifted = logits - high
            self.logits = shifted - ops.log(ops.exp(shifted).sum(-1, keepdims=True))
            self.probs = ops.exp(self.logits)
        super().__init__(self.logits.shape[:-1])

    @property
    def mode(self):
        return self.probs.argmax(-1).astype(ms.int64)

    @property
    def mean(self):
        return ops.full(self.batch_shape, float("nan"), dtype=self.probs.dtype)

    @property
    def variance(self):
        return ops.full(self.batch_shape, float("nan"), dtype=self.probs.dtype)

    def sample(self, sample_shape=()):
        # the largest of logits with Gumbel noise is a draw of the distribution
        shape = tuple(sample_shape) + self.logits.shape
        noise = ops.clamp(ops.rand(shape), 1e-20, 1 - 6e-8).astype(self.logits.dtype)
        drawn = (self.logits - ops.log(-ops.log(noise))).argmax(-1)
        return ops.stop_gradient(drawn.astype(ms.int64))

    def log_prob(self, value):
        index = value.astype(ms.int64)
        if index.ndim < len(self.batch_shape):
            index = index.broadcast_to(self.batch_shape)
        logits = self.logits.broadcast_to(index.shape + self.logits.shape[-1:])
        return logits.gather_elements(-1, index.expand_dims(-1)).squeeze(-1)

    def entropy(self):
        return -(self.logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = ops.arange(self.logits.shape[-1]).astype(ms.int64)
        values = values.reshape((-1,) + (1,) * len(self.batch_shape))
        return values.broadcast_to((-1, *self.batch_shape)) if expand else values


class Bernoulli(Distribution):
    """Reproduces torch.distributions.Bernoulli: zeros and ones."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        one_of(probs, logits)
        if probs is not None:
            (self.probs,) = as_tensors(probs)
            inside = kept_inside(self.probs)
            self.logits = ops.log(inside) - ops.log1p(-inside)
        else:
            (self.logits,) = as_tensors(logits)
            self.probs = ops.sigmoid(self.logits)
        super().__init__(self.probs.shape)

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        draws = ops.rand(self.shape_of(sample_shape)).astype(self.probs.dtype)
        return ops.stop_gradient((draws < self.probs).astype(self.probs.dtype))

    def log_prob(self, value):
        return -binary_cross_entropy_with_logits(self.logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Independent(Distribution):
    """Reproduces torch.distributions.Independent: the last batch axes belong to one event."""

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample
        super().__init__(shape[:cut], shape[cut:])

    def summed(self, x):
        """The sum over the axes that became one event."""
        count = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-count, 0))) if count else x

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self):
        return self.summed(self.base_dist.entropy())
