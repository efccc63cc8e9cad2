"""In: tensors of places and degrees. Out: torch.special's orthogonal polynomials."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.dtypes import as_float, paired


def chebyshev_polynomial_t(x, n):
    """torch.special.chebyshev_polynomial_t, the first kind, by its recurrence."""
    x, degree = places_and_degrees(x, n)
    return by_recurrence(chebyshev_step, x, degree, x)


def chebyshev_polynomial_u(x, n):
    """torch.special.chebyshev_polynomial_u, the second kind, by its recurrence."""
    x, degree = places_and_degrees(x, n)
    return by_recurrence(chebyshev_step, x, degree, 2 * x)


def chebyshev_polynomial_v(x, n):
    """torch.special.chebyshev_polynomial_v, the third kind, by its recurrence."""
    x, degree = places_and_degrees(x, n)
    return by_recurrence(chebyshev_step, x, degree, 2 * x - 1)


def chebyshev_polynomial_w(x, n):
    """torch.special.chebyshev_polynomial_w, the fourth kind, by its recurrence."""
    x, degree = places_and_degrees(x, n)
    return by_recurrence(chebyshev_step, x, degree, 2 * x + 1)


def shifted_chebyshev_polynomial_t(x, n):
    """torch.special.shifted_chebyshev_polynomial_t: the first kind at 2x - 1."""
    return chebyshev_polynomial_t(2 * x - 1, n)


def shifted_chebyshev_polynomial_u(x, n):
    """torch.special.shifted_chebyshev_polynomial_u: the second kind at 2x - 1."""
    return chebyshev_polynomial_u(2 * x - 1, n)


def shifted_chebyshev_polynomial_v(x, n):
    """torch.special.shifted_chebyshev_polynomial_v: the third kind at 2x - 1."""
    return chebyshev_polynomial_v(2 * x - 1, n)


def shifted_chebyshev_polynomial_w(x, n):
    """torch.special.shifted_chebyshev_polynomial_w: the fourth kind at 2x - 1."""
    return chebyshev_polynomial_w(2 * x - 1, n)


def hermite_polynomial_h(x, n):
    """torch.special.hermite_polynomial_h, the physicists', by its recurrence."""
    x, degree = places_and_degrees(x, n)
    return by_recurrence(hermite_h_step, x, degree, 2 * x)


def hermite_polynomial_he(x, n):
    """torch.special.hermite_polynomial_he, the probabilists', by its recurrence."""
    x, degree = places_and_degrees(x, n)
    return by_recurrence(hermite_he_step, x, degree, x)


def laguerre_polynomial_l(x, n):
    """torch.special.laguerre_polynomial_l by its recurrence."""
    x, degree = places_and_degrees(x, n)
    return by_recurrence(laguerre_step, x, degree, 1 - x)


def legendre_polynomial_p(x, n):
    """torch.special.legendre_polynomial_p by its recurrence."""
    x, degree = places_and_degrees(x, n)
    return by_recurrence(legendre_step, x, degree, x)


def chebyshev_step(k, x, now, before):
    """Degree k + 1 from degrees k and k - 1, for all four kinds."""
    return 2 * x * now - before


def hermite_h_step(k, x, now, before):
    """Degree k + 1 from degrees k and k - 1."""
    return 2 * (x * now - k * before)


def hermite_he_step(k, x, now, before):
    """Degree k + 1 from degrees k and k - 1."""
    return x * now - k * before


def laguerre_step(k, x, now, before):
    """Degree k + 1 from degrees k and k - 1."""
    return ((2 * k + 1 - x) * now - k * before) / (k + 1)


def legendre_step(k, x, now, before):
    """Degree k + 1 from degrees k and k - 1."""
    return ((2 * k + 1) * x * now - k * before) / (k + 1)


def places_and_degrees(x, n):
    """Both as tensors of one shape and floating type; degrees are cut to whole numbers."""
    x, n = paired(x, n)
    x = as_float(x) if isinstance(x, ms.Tensor) else as_float(n) * 0 + x
    degree = as_float(n) if isinstance(n, ms.Tensor) else ops.full_like(x, float(n))
    x = x + ops.zeros_like(degree)
    return x, ops.trunc(degree) + ops.zeros_like(x)


def by_recurrence(step, x, degree, first):
    """The polynomials of each ``degree`` at ``x``: 1, ``first``, then ``step`` by ``step``.

    Degrees below 0 give 0. The loop runs once for each degree up to the highest.
    """
    before, now = ops.ones_like(x), first
    result = ops.where(degree < 1, before, now)
    result = ops.where(degree < 0, ops.zeros_like(x), result)
    if x.size == 0:
        return result
    k = ms.tensor(1.0, x.dtype)
    highest = degree.max()
    while k < highest:
        before, now = now, step(k, x, now, before)
        k = k + 1
        result = ops.where(degree >= k, now, result)
    return result
