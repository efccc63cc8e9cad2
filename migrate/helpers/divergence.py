"""In: two distributions of one kind. Out: torch.distributions.kl_divergence in closed form."""

from mindspore import ops

from migrate.helpers.activation import softplus_of
from migrate.helpers.discrete_distributions import Bernoulli, Categorical, Independent
from migrate.helpers.distributions import Exponential, Normal


def kl_divergence(p, q):
    """torch.distributions.kl_divergence of Normal, LogNormal, Exponential, Categorical, Bernoulli
    and Independent of these. Raises NotImplementedError for other pairs."""
    if isinstance(p, Independent) and isinstance(q, Independent):
        return p.summed(kl_divergence(p.base_dist, q.base_dist))
    if isinstance(p, Normal) and type(p) is type(q):
        ratio = ops.square(p.scale / q.scale)
        return 0.5 * (ratio + ops.square((p.loc - q.loc) / q.scale) - 1 - ops.log(ratio))
    if isinstance(p, Exponential) and isinstance(q, Exponential):
        ratio = q.rate / p.rate
        return -ops.log(ratio) + ratio - 1
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        gap = p.probs * (p.logits - q.logits)
        return settled(gap, q.probs == 0, p.probs == 0).sum(-1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        ones = p.probs * (folded(-q.logits) - folded(-p.logits))
        zeros = (1 - p.probs) * (folded(q.logits) - folded(p.logits))
        ones = settled(ones, q.probs == 0, p.probs == 0)
        return ones + settled(zeros, q.probs == 1, p.probs == 1)
    raise NotImplementedError(f"kl_divergence({type(p).__name__}, {type(q).__name__})")


def folded(x):
    """log(1 + e^x), which does not overflow."""
    return softplus_of(x, 1.0, 40.0)


def settled(term, impossible, absent):
    """Infinity where q cannot give what p gives, and 0 where p does not give it either."""
    term = ops.where(impossible, ops.full_like(term, float("inf")), term)
    return ops.where(absent, ops.zeros_like(term), term)
