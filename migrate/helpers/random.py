"""In: sizes, tensors and parameters of distributions. Out: random tensors in torch's forms."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.creation import size_of


def rand(*size, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """torch.rand: uniform in [0, 1); other numbers than torch's for the same seed."""
    shape = size_of(size)
    return ops.rand(*shape, dtype=dtype) if shape else ops.rand(1, dtype=dtype).squeeze(0)


def randn(*size, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """torch.randn: standard normal; other numbers than torch's for the same seed."""
    shape = size_of(size)
    return ops.randn(*shape, dtype=dtype) if shape else ops.randn(1, dtype=dtype).squeeze(0)


def rand_like(
    input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """torch.rand_like: uniform in [0, 1), in the shape of ``input``."""
    return ops.rand_like(input, dtype=dtype)


def randn_like(
    input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """torch.randn_like: standard normal, in the shape and dtype of ``input``."""
    return ops.randn_like(input, dtype=dtype or input.dtype)


def randint(
    low, high, size, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """torch.randint: whole numbers in [low, high), int64 unless told otherwise."""
    drawn = ops.randint(low, high, tuple(size))
    return drawn if dtype is None else drawn.astype(dtype)


def randperm(n, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """torch.randperm: 0 to n - 1 in random order, int64 unless told otherwise."""
    order = ops.randperm(n)
    return order if dtype is None else order.astype(dtype)


def normal_around(mean, std=1.0):
    """torch.normal where ``mean`` or ``std`` is a tensor: one draw for each of their elements."""
    centre = mean + ops.zeros_like(std) if isinstance(std, ms.Tensor) else mean
    return centre + std * ops.randn_like(centre).astype(centre.dtype)


def bernoulli(input):
    """torch.bernoulli: 1 with the probability that each element gives, else 0."""
    return (ops.rand_like(input) < input).astype(input.dtype)


def randint_like(input, low, high, dtype=None):
    """torch.randint_like: whole numbers in [low, high) in the shape and dtype of ``input``."""
    return ops.randint(low, high, input.shape).astype(input.dtype if dtype is None else dtype)
