"""In: tensors. Out: torch.special's error, normal and zeta functions that MindSpore lacks."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.dtypes import as_float, paired

# (1 + 2x) erfcx(x) for x >= 0 as a polynomial in (x - 2) / (x + 2): a Chebyshev fit, within 2e-7
ERFCX_TERMS = (
    1.27697838, -0.0927637628, -0.166030384, 0.164049454, -0.0542202666, -0.00801896308,
    0.00872460764, 0.00121741059, -0.00146407091, -0.000357920448, 0.00022157155, 6.33694584e-05,
    -2.02559894e-05,
)  # fmt: skip

# B_2j / (2j)!: the weights of the Euler-Maclaurin formula
BERNOULLI_TERMS = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)


def horner(t, terms):
    """The polynomial with coefficients ``terms``, the constant one first, at ``t``."""
    total = ops.full_like(t, terms[-1])
    for term in terms[-2::-1]:
        total = total * t + term
    return total


def scaled_erfc(x):
    """exp(x^2) erfc(x) for x >= 0."""
    x = ops.where(x > 1e30, ops.full_like(x, 1e30), x)
    return horner((x - 2) / (x + 2), ERFCX_TERMS) / (1 + 2 * x)


def large_exp(x):
    """exp(x) for x >= 0; the kernel of expm1 keeps digits that the one of exp loses far from 0."""
    return ops.expm1(x) + 1


def erfcx(input):
    """torch.special.erfcx: exp(x^2) erfc(x), within 5e-7 where x >= 0 (float32)."""
    x = as_float(input)
    right = scaled_erfc(ops.where(x < 0, -x, x))
    left = 2 * large_exp(ops.square(ops.where(x < 0, x, ops.zeros_like(x)))) - right
    return ops.where(x < 0, left, right)


def log_ndtr(input):
    """torch.special.log_ndtr: the logarithm of the normal distribution function, tails included."""
    x = as_float(input)
    low = ops.where(x < -1, x, ops.full_like(x, -1.0))
    left = ops.log(0.5 * scaled_erfc(-0.7071067811865476 * low)) - 0.5 * ops.square(low)
    over = -0.5 * ops.erfc(0.7071067811865476 * ops.where(x < -1, ops.full_like(x, -1.0), x))
    # the kernel of log1p loses small numbers
    small = ops.maximum(over, -0.003)
    right = ops.where(over > -0.003, small * (1 - small * (0.5 - small / 3)), ops.log1p(over))
    return ops.where(x < -1, left, right)


def ndtri(input):
    """torch.special.ndtri: the quantile of the normal distribution, within 1e-6 (float32).

    Abramowitz and Stegun 26.2.23, then Newton steps on log_ndtr; the last one carries the gradient.
    """
    p = as_float(input)
    inside = ops.logical_and(p > 0, p < 1)
    p_in = ops.where(inside, p, ops.full_like(p, 0.5))
    upper = p_in > 0.5
    tail = ops.where(upper, 1 - p_in, p_in)
    t = ops.sqrt(-2 * ops.log(ops.stop_gradient(tail)))
    x = horner(t, (2.515517, 0.802853, 0.010328)) / horner(t, (1.0, 1.432788, 0.189269, 0.001308))
    x = x - t
    for _ in range(3):
        x = quantile_step(ops.stop_gradient(x), tail)
    x = ops.where(upper, -x, x)
    end = ops.where(p == 0, ops.full_like(p, -float("inf")), ops.full_like(p, float("nan")))
    end = ops.where(p == 1, ops.full_like(p, float("inf")), end)
    return ops.where(inside, x, end)


def quantile_step(x, p):
    """A Newton step towards the x <= 0 whose normal distribution function is ``p``."""
    level = log_ndtr(x)
    slope = 2.5066282746310002 * ops.exp(level) * large_exp(0.5 * ops.square(x))
    return x - ops.stop_gradient(slope) * (ops.stop_gradient(level) - ops.log(p))


def zeta(input, other):
    """torch.special.zeta: Hurwitz's zeta function of ``input`` > 1 at any ``other``.

    Below 0 the sum is split at its pole: zeta(x, q) = zeta(x, f) + (-1)^x (zeta(x, 1 - f) -
    zeta(x, 1 - q)) with f = q - floor(q).
    """
    input, other = paired(input, other)
    x = as_float(input) if isinstance(input, ms.Tensor) else as_float(other) * 0 + input
    q = as_float(other) if isinstance(other, ms.Tensor) else x * 0 + other
    x, q = x + ops.zeros_like(q), q + ops.zeros_like(x)
    below = q < 0
    whole = ops.floor(q) == q
    broken = ops.logical_and(below, ops.logical_not(whole))
    share = ops.where(broken, q - ops.floor(q), ops.ones_like(q))
    rest = ops.where(broken, ops.ceil(q) - q, ops.ones_like(q))
    far = ops.where(broken, 1 - q, ops.ones_like(q))
    safe = ops.maximum(x, 1.0 + 1e-6)
    odd = 1 - 2 * (ops.floor(x) - 2 * ops.floor(x / 2))
    split = positive_zeta(safe, share) + odd * (
        positive_zeta(safe, rest) - positive_zeta(safe, far)
    )
    straight = positive_zeta(safe, ops.where(below, ops.ones_like(q), q))
    result = ops.where(broken, split, straight)
    infinite = ops.logical_or(x == 1, ops.logical_and(q <= 0, whole))
    result = ops.where(infinite, ops.full_like(result, float("inf")), result)
    undefined = ops.logical_and(broken, ops.floor(x) != x)
    undefined = ops.logical_or(x < 1, ops.logical_and(undefined, x != 1))
    return ops.where(undefined, ops.full_like(result, float("nan")), result)


def positive_zeta(x, q):
    """Hurwitz's zeta function for x > 1 and q > 0: ten terms, then Euler-Maclaurin."""
    total = ops.pow(q, -x)
    for k in range(1, 10):
        total = total + ops.pow(q + k, -x)
    a = q + 10
    term = ops.pow(a, -x)
    total = total + ops.pow(a, 1 - x) / (x - 1) + 0.5 * term
    term = term * x / a
    for j in range(6):
        total = total + BERNOULLI_TERMS[j] * term
        term = term * ((x + 2 * j + 1) / a) * ((x + 2 * j + 2) / a)
    return total


def polygamma(n, input):
    """torch.polygamma: the ``n``-th derivative of digamma, (-1)^(n+1) n! zeta(n + 1, x)."""
    x = as_float(input)
    if n == 0:
        return ops.digamma(x)
    scale = 1.0 if n % 2 == 1 else -1.0
    for i in range(2, n + 1):
        scale = scale * i
    return scale * zeta(ops.full_like(x, n + 1.0), x)
