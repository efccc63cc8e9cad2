"""In: measured errors of one comparison. Out: the limit that was allowed and a verdict.

Errors are relative: ``E(x) = ||x - r|| / ||r||`` in the Euclidean norm, with r torch's result in
float64. A result is accepted when ``E(ms32) <= k * own + floor``:

- ``own`` is the error that torch makes itself in float32: the larger of its plain run and of a
  run whose inputs, weights and operator results are moved by about one unit roundoff at random
  (Vignes, "A stochastic arithmetic for reliable scientific computation", 1993; Parker, "Monte
  Carlo arithmetic", 1997). It shows how ill-conditioned a computation is, which one lucky run
  does not.
- ``floor = u * (4 + sqrt(n))``, u the unit roundoff of the dtype and n the sum of the reduction
  lengths of the operators that ran: rounding errors of a sum of n terms grow like sqrt(n) u
  (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019).

A result above that limit is KERNEL, not PASS, when torch comes out as far off once its kernels
are made as coarse as MindSpore's (coarse.py); everything else above the limit is DIVERGED.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from migrate.parity.exchange import Array
from migrate.records.outcomes import Verdict

UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}


@dataclass(frozen=True)
class Strictness:
    """How errors are judged: factor k, or elementwise rtol/atol where one of them is given."""

    k: float = 3.0
    rtol: float | None = None
    atol: float | None = None

    @property
    def elementwise(self) -> bool:
        return self.rtol is not None or self.atol is not None


def floor(dtype: str, reduction: float) -> float:
    """The error that is always allowed; ``reduction`` is the summed reduction length."""
    return UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float32"]) * (4.0 + math.sqrt(reduction))


def relative_error(value: Array, reference: Array) -> float:
    """``||value - reference|| / ||reference||``; absolute (root mean square) where it is zero.

    Both have the same shape. NaN and infinities are compared by place, see `same_pattern`, and
    left out of the norm.
    """
    finite = np.isfinite(reference) & np.isfinite(value)
    wide = np.complex128 if np.iscomplexobj(reference) else np.float64
    difference = np.where(finite, value, 0).astype(wide) - np.where(finite, reference, 0)
    norm = float(np.linalg.norm(difference.ravel()))
    if norm == 0.0:
        return 0.0
    scale = float(np.linalg.norm(np.where(finite, reference, 0).astype(wide).ravel()))
    return norm / scale if scale else norm / math.sqrt(difference.size)


def tolerance(value: Array, reference: Array) -> float:
    """The least t for which ``allclose(value, reference, rtol=t, atol=t)``, of finite numbers."""
    finite = np.isfinite(reference) & np.isfinite(value)
    gaps = np.abs(np.where(finite, value, 0) - np.where(finite, reference, 0))
    return float((gaps / (1 + np.abs(np.where(finite, reference, 0)))).max(initial=0.0))


def means(value: Array, reference: Array) -> float:
    """How far the means of the finite numbers lie apart."""
    finite = np.isfinite(reference) & np.isfinite(value)
    gaps = np.where(finite, value, 0) - np.where(finite, reference, 0)
    return float(np.abs(gaps.mean())) if gaps.size else 0.0


def same_pattern(value: Array, reference: Array) -> bool:
    """NaN and each infinity stand at the same places."""
    if np.isfinite(value).all() and np.isfinite(reference).all():
        return True
    same_nan = np.array_equal(np.isnan(value), np.isnan(reference))
    infinite = np.isinf(reference)
    return (
        same_nan
        and np.array_equal(np.isinf(value), infinite)
        and np.array_equal(value[infinite], reference[infinite].astype(value.dtype))
    )


def judge(error: float, own: float, coarse: float, least: float, k: float) -> tuple[Verdict, float]:
    """Verdict and the limit that decided it. ``coarse`` is 0 where no coarse kernel ran."""
    limit = k * own + least
    if error <= limit:
        return Verdict.PASS, limit
    wider = k * max(own, coarse) + least
    if coarse and error <= wider:
        return Verdict.KERNEL, wider
    return Verdict.DIVERGED, limit
