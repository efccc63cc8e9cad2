"""In: tensors. Out: torch.special's Bessel and Airy functions where MindSpore's differ or lack."""

from mindspore import ops

from migrate.helpers.dtypes import as_float
from migrate.helpers.special_functions import large_exp

# Gauss-Laguerre nodes and weights for u^(-1/6) exp(-u), the weights summing to 1
AIRY_NODES = (
    0.110202143, 0.666511344, 1.71256882, 3.27484768, 5.39666293, 8.1462134, 11.6324375,
    16.0406457, 21.7299752, 29.6232685,
)  # fmt: skip
AIRY_WEIGHTS = (
    0.363578232, 0.388362399, 0.189734053, 0.0504036661, 0.00734069876, 0.000560246514,
    2.04036453e-05, 2.99275489e-07, 1.26805049e-09, 6.69780786e-13,
)  # fmt: skip


def bessel_y0(input):
    """torch.special.bessel_y0: NaN below 0, where MindSpore's is -inf."""
    x = as_float(input)
    return where_negative(x, ops.bessel_y0(x), float("nan"))


def bessel_y1(input):
    """torch.special.bessel_y1: NaN below 0 and -inf at 0, where MindSpore's are -inf and NaN."""
    x = as_float(input)
    y = ops.where(x == 0, ops.full_like(x, -float("inf")), ops.bessel_y1(x))
    return where_negative(x, y, float("nan"))


def bessel_i1(input):
    """torch.special.i1; at 0 its gradient is 1/2, where the kernel's is 1."""
    absent = input == 0
    return ops.where(absent, input / 2, ops.bessel_i1(ops.where(absent, 1.0, input)))


def modified_bessel_k0(input):
    """torch.special.modified_bessel_k0: NaN below 0, where MindSpore's is inf."""
    x = as_float(input)
    return where_negative(x, ops.bessel_k0(x), float("nan"))


def modified_bessel_k1(input):
    """torch.special.modified_bessel_k1: NaN below 0, where MindSpore's is inf."""
    x = as_float(input)
    return where_negative(x, ops.bessel_k1(x), float("nan"))


def scaled_modified_bessel_k0(input):
    """torch.special.scaled_modified_bessel_k0: NaN below 0, where MindSpore's is inf."""
    x = as_float(input)
    return where_negative(x, ops.bessel_k0e(x), float("nan"))


def scaled_modified_bessel_k1(input):
    """torch.special.scaled_modified_bessel_k1: NaN below 0, where MindSpore's is inf."""
    x = as_float(input)
    return where_negative(x, ops.bessel_k1e(x), float("nan"))


def where_negative(x, y, value):
    """``y``, but ``value`` where ``x`` is below 0."""
    return ops.where(x < 0, ops.full_like(y, value), y)


def spherical_bessel_j0(input):
    """torch.special.spherical_bessel_j0: sin(x) / x, 1 at 0 and 0 at infinity."""
    x = as_float(input)
    plain = ops.logical_and(x != 0, ops.logical_not(ops.isinf(x)))
    safe = ops.where(plain, x, ops.ones_like(x))
    return ops.where(plain, ops.sin(safe) / safe, (x == 0).astype(x.dtype))


def airy_ai(input):
    """torch.special.airy_ai, within 2e-6 of the scale (float32).

    Near 0 Taylor's series; elsewhere the integrals of the Bessel functions of order 1/3 (DLMF
    9.6.2, 9.6.6 and 10.9) by Gauss-Laguerre quadrature with ten nodes.
    """
    x = as_float(input)
    far = ops.clamp(ops.abs(x), 2.0, 1e6)
    angle = 2 / 3 * far * ops.sqrt(far)
    decay, wave = ops.zeros_like(x), ops.zeros_like(x)
    for node, weight in zip(AIRY_NODES, AIRY_WEIGHTS):
        ratio = node / (2 * angle)
        decay = decay + weight * ops.pow(1 + ratio, -1 / 6)
        size = weight * ops.pow(1 + ops.square(ratio), -1 / 12)
        wave = wave + size * ops.cos(angle - 0.7853981633974483 - ops.atan(ratio) / 6)
    scale = 0.5641895835477563 / ops.sqrt(ops.sqrt(far))
    right = 0.5 * scale * decay / large_exp(angle)
    outer = ops.where(x > 0, right, scale * wave)
    result = ops.where(ops.abs(x) < 2, airy_series(ops.clamp(x, -2.0, 2.0)), outer)
    return ops.where(ops.isfinite(x), result, ops.full_like(x, float("nan")))


def airy_series(x):
    """Taylor's series of the Airy function for abs(x) <= 2."""
    cube = x * ops.square(x)
    even, odd = 0.3550280538878172, 0.2588194037928068
    first, second = ops.full_like(x, even), odd * x
    total = first - second
    for k in range(1, 10):
        first = first * cube / ((3 * k - 1) * (3 * k))
        second = second * cube / ((3 * k) * (3 * k + 1))
        total = total + first - second
    return total
