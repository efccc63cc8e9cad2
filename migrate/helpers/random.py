"""In: sizes, tensors and parameters of distributions. Out: random tensors in torch's forms.

A ``generator`` is a `migrate.helpers.generators.Generator`; it draws what torch's would.
"""

import mindspore as ms
from mindspore import ops

from migrate.helpers.creation import size_of
from migrate.helpers.generators import drawn_tensor


def rand(
    *size,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """torch.rand: uniform in [0, 1); other numbers than torch's without a generator."""
    shape = size_of(size)
    if generator is not None:
        return drawn_tensor(generator.uniform, shape, dtype)
    return ops.rand(*shape, dtype=dtype) if shape else ops.rand(1, dtype=dtype).squeeze(0)


def randn(
    *size,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """torch.randn: standard normal; other numbers than torch's without a generator."""
    shape = size_of(size)
    if generator is not None:
        return drawn_tensor(generator.normal, shape, dtype)
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
    low,
    high,
    size,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """torch.randint: whole numbers in [low, high), int64 unless told otherwise."""
    if generator is not None:
        return drawn_tensor(
            lambda count, _: generator.whole(low, high, count), tuple(size), dtype or ms.int64
        )
    numbers = ops.randint(low, high, tuple(size))
    return numbers if dtype is None else numbers.astype(dtype)


def randperm(
    n,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """torch.randperm: 0 to n - 1 in random order, int64 unless told otherwise."""
    if generator is not None:
        return drawn_tensor(lambda count, _: generator.order(count), (n,), dtype or ms.int64)
    order = ops.randperm(n)
    return order if dtype is None else order.astype(dtype)


def normal(mean, std, size, *, generator=None, dtype=None):
    """torch.normal of numbers: draws of ``size`` from N(mean, std^2)."""
    if generator is None:
        return ops.normal(tuple(size), mean, std)
    return drawn_tensor(generator.normal, tuple(size), dtype) * std + mean


def normal_around(mean, std=1.0, *, generator=None):
    """torch.normal where ``mean`` or ``std`` is a tensor: one draw for each of their elements."""
    centre = mean + ops.zeros_like(std) if isinstance(std, ms.Tensor) else mean
    if generator is not None:
        return centre + std * drawn_tensor(generator.normal, centre.shape, centre.dtype)
    return centre + std * ops.randn_like(centre).astype(centre.dtype)


def bernoulli(input, *, generator=None):
    """torch.bernoulli: 1 with the probability that each element gives, else 0."""
    if generator is not None:
        return (drawn_tensor(generator.uniform, input.shape, input.dtype) < input).astype(input.dtype)
    return (ops.rand_like(input) < input).astype(input.dtype)


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """torch.multinomial: places of the last axis, drawn by the chances there; int64."""
    if generator is None:
        return ops.multinomial(input, num_samples, replacement).astype(ms.int64)
    chances = input.asnumpy().reshape(-1, input.shape[-1])
    return drawn_tensor(
        lambda _, __: generator.choices(chances, num_samples, replacement),
        (*input.shape[:-1], num_samples),
        ms.int64,
    )


def randint_like(input, low, high, dtype=None):
    """torch.randint_like: whole numbers in [low, high) in the shape and dtype of ``input``."""
    return ops.randint(low, high, input.shape).astype(input.dtype if dtype is None else dtype)
