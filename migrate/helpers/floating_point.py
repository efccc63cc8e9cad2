"""In: floating point tensors. Out: torch's functions of their bits: sign, exponent, next number."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.creation import broadcast_shapes
from migrate.helpers.dtypes import as_float, is_whole, paired


def binary_exponent(input):
    """The int-valued e of ``abs(input) = m * 2**e`` with 0.5 <= m < 1, and m; input > 0, finite."""
    small = input < 1e-30
    size = ops.where(small, input * 2.0**96, input)
    # the logarithm may be off by a little: m says in which direction
    exponent = ops.floor(ops.log2(size)) + 1
    share = times_two_to(size, -exponent)
    exponent = ops.where(share >= 1, exponent + 1, ops.where(share < 0.5, exponent - 1, exponent))
    share = times_two_to(size, -exponent)
    return ops.where(small, exponent - 96, exponent), share


def times_two_to(input, exponent):
    """input * 2**exponent, in two steps, as one power alone may not be finite."""
    half = ops.floor(exponent / 2)
    return input * ops.pow(2.0, half) * ops.pow(2.0, exponent - half)


def frexp(input):
    """torch.frexp: (mantissa, int32 exponent); zero, infinity and NaN have exponent 0."""
    size = ops.abs(ops.stop_gradient(input))
    usable = ops.logical_and(size > 0, ops.isfinite(size))
    exponent = binary_exponent(ops.where(usable, size, ops.ones_like(size)))[0]
    exponent = ops.where(usable, exponent, ops.zeros_like(exponent))
    return times_two_to(input, -exponent), exponent.astype(ms.int32)


def nextafter(input, other):
    """torch.nextafter: the next number from ``input`` towards ``other``; the inputs broadcast."""
    input, other = paired(input, other)
    shape = broadcast_shapes(input.shape, other.shape)
    start, end = input.broadcast_to(shape), other.broadcast_to(shape)
    if input.dtype != ms.float32:
        return ops.nextafter(start, end)
    # MindSpore's CPU kernel gives a float32 back as it is
    up, down = end > start, end < start
    size = ops.abs(start)
    usable = ops.logical_and(size > 0, ops.isfinite(size))
    exponent, share = binary_exponent(ops.where(usable, size, ops.ones_like(size)))
    inward = ops.where(start > 0, down, up)
    finer = ops.logical_and(inward, share == 0.5)
    digits = ops.where(finer, exponent - 25, exponent - 24)
    step = ops.pow(2.0, ops.clamp(digits, min=-149.0))
    step = ops.where(usable, step, ops.full_like(step, 2.0**-149))
    moved = ops.where(up, start + step, ops.where(down, start - step, end + start * 0))
    largest = ops.full_like(start, 3.4028234663852886e38) * ops.sign(start)
    moved = ops.where(ops.logical_and(ops.isinf(start), ops.logical_or(up, down)), largest, moved)
    return ops.where(ops.isinf(start) & (start == end), end, moved)


def signbit(input):
    """torch.signbit: whether a number is negative, -0.0 included; NaN counts as positive."""
    if is_whole(input):
        return input.astype(ms.int64) < 0
    return ops.logical_or(input < 0, ops.reciprocal(input) < 0)  # 1 / -0.0 is -inf


def copysign(input, other):
    """torch.copysign: the size of ``input`` with the sign of ``other``, a Tensor or a number."""
    if isinstance(other, ms.Tensor):
        input, other = paired(as_float(input), other)
    else:
        other = ms.tensor(float(other), dtype=ms.float32)
    size = ops.abs(as_float(input))
    return ops.where(signbit(ops.stop_gradient(other)), -size, size)
