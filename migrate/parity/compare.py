"""Compare described values of both frameworks: a verdict, the errors, and how the numbers lie.

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
are made as coarse as MindSpore's (COARSE in noise.py); everything else above it is DIVERGED.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from migrate.parity.exchange import Array, Spec, leaves
from migrate.records.outcomes import Verdict, Why

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
    """Return the error that is always allowed; ``reduction`` is the summed reduction length."""
    return UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float32"]) * (4.0 + math.sqrt(reduction))


def relative_error(value: Array, reference: Array) -> float:
    """Return ``||value - reference|| / ||reference||``, absolute (rms) where that is zero.

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
    """Return how far the means of the finite numbers lie apart."""
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


EDGES = tuple(10.0**power for power in range(-9, 1))
BINS = len(EDGES) + 2  # exact, below the first edge, between two edges, from the last one on


def spread(value: Array, reference: Array) -> dict[str, Any]:
    """Return what `migrate.records.result.Spread` says, as plain values; both have the same shape.

    Only elements that are finite on both sides are in a bin; ``odd`` counts the others.
    """
    value, reference = _real(value), _real(reference)
    both = np.isfinite(value) & np.isfinite(reference)
    wanted = np.where(both, reference, 0.0)
    size = float(np.sqrt(np.mean(wanted * wanted))) if wanted.size else 0.0
    errors = np.abs(np.where(both, value, 0.0) - wanted)[both] / (size or 1.0)
    exact = int(np.count_nonzero(errors == 0.0))
    places = np.searchsorted(EDGES, errors[errors > 0.0], side="right")
    counts = np.bincount(places, minlength=BINS - 1)
    return {
        "bins": [exact, *(int(count) for count in counts)],
        "torch": _side(reference),
        "mindspore": _side(value),
    }


def _real(numbers: Array) -> Array:
    plain = np.abs(numbers) if np.iscomplexobj(numbers) else numbers
    return np.asarray(plain, np.float64).ravel()


def _side(numbers: Array) -> dict[str, float]:
    kept = numbers[np.isfinite(numbers)]
    odd = int(numbers.size - kept.size)
    if not kept.size:
        return {"mean": 0.0, "std": 0.0, "least": 0.0, "most": 0.0, "odd": odd}
    # divided first: a sum of the largest numbers of float32 is not finite for long
    top = float(np.abs(kept).max()) or 1.0
    part = kept / top
    return {
        "mean": float(part.mean()) * top, "std": float(part.std()) * top,
        "least": float(kept.min()), "most": float(kept.max()), "odd": odd,
    }  # fmt: skip


ORDER = tuple(Verdict)
ROUGH = 0.1  # where torch's own error is larger, agreement says nothing


@dataclass(frozen=True)
class Measure:
    """One comparison: ``elements`` numbers, the worst relative error, and what was allowed.

    ``tolerance`` is what ``allclose(rtol=t, atol=t)`` would need, ``means`` how far the means lie
    apart: what plainer comparisons see. ``spread`` is how the numbers lie.
    """

    verdict: Verdict
    elements: int = 0
    error: float | None = None
    own: float | None = None
    limit: float | None = None
    detail: str = ""
    why: Why | None = None
    tolerance: float | None = None
    means: float | None = None
    spread: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Measure:
        """Return the measure of `as_json`."""
        why = Why(answer["why"]) if answer.get("why") else None
        return cls(**{**answer, "verdict": Verdict(answer["verdict"]), "why": why})

    @classmethod
    def none(cls, why: Why) -> Measure:
        """Return the measure of what has nothing to compare."""
        return cls(Verdict.NOT_RUN, detail=why.value, why=why)

    @property
    def is_vague(self) -> bool:
        """Return whether torch's own rounding leaves no number to compare."""
        return self.why is Why.VAGUE and not self.elements

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict.value}

    def called(self, verdict: Verdict, detail: str | None = None) -> Measure:
        """Return the same numbers under another verdict."""
        return replace(self, verdict=verdict, detail=self.detail if detail is None else detail)


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst verdict of a list; NOT_RUN for an empty one."""
    return max(verdicts, key=ORDER.index, default=Verdict.NOT_RUN)


def merge(measures: list[Measure]) -> Measure:
    """Return one measure for several: verdict and numbers of the worst, elements added up."""
    if not measures:
        return Measure(Verdict.NOT_RUN, detail="nothing was compared")
    chosen = max(measures, key=lambda m: (ORDER.index(m.verdict), _excess(m)))
    total = sum(measure.elements for measure in measures)
    return replace(
        chosen, elements=total, tolerance=_most(measures, "tolerance"),
        means=_most(measures, "means"),
    )  # fmt: skip


def _most(measures: list[Measure], name: str) -> float | None:
    """Return the largest of what the measures have under a name."""
    return max((v for m in measures if (v := getattr(m, name)) is not None), default=None)


def _excess(measure: Measure) -> float:
    return (measure.error or 0.0) / (measure.limit or 1.0)


def compare(
    expected: Spec,
    actual: Spec,
    reference: Callable[[Spec], Array],
    value: Callable[[Spec], Array],
    strictness: Strictness,
    flat: bool = False,
) -> Measure:
    """Compare two described values leaf by leaf; structure first, then shape, dtype, numbers.

    ``reference`` and ``value`` read the arrays of the two sides. Expected tensor leaves carry
    ``own``, ``coarse``, ``floor`` (see compare.py) and ``random`` (only shape and dtype count).
    ``flat``: a compiled graph hands its result out as a plain tuple without None, so only the
    order of the leaves counts where the structures differ.
    """
    left, right = list(leaves(expected)), list(leaves(actual))
    if flat and [place for place, _ in left] != [place for place, _ in right]:
        left, right = _present(left), _present(right)
        if len(left) == len(right):
            right = [(place, leaf) for (place, _), (_, leaf) in zip(left, right, strict=True)]
    opaque = next((leaf["why"] for _, leaf in left if leaf["t"] == "opaque"), "")
    if opaque:
        return Measure(Verdict.NOT_RUN, detail=f"the result holds {opaque}")
    if [place for place, _ in left] != [place for place, _ in right]:
        return Measure(Verdict.SHAPE, detail=_structure(left, right))
    measures = [
        _leaf(place, one, other, reference, value, strictness)
        for (place, one), (_, other) in zip(left, right, strict=False)
    ]
    return merge(measures)


def _present(side: list[tuple[str, Spec]]) -> list[tuple[str, Spec]]:
    return [(place, leaf) for place, leaf in side if leaf != {"t": "value", "v": None}]


def _structure(left: list[tuple[str, Spec]], right: list[tuple[str, Spec]]) -> str:
    def places(side: list[tuple[str, Spec]]) -> str:
        return ", ".join(place or "a bare value" for place, _ in side[:6]) or "nothing"

    return f"another structure: torch has {places(left)}; MindSpore has {places(right)}"


def _leaf(
    place: str,
    expected: Spec,
    actual: Spec,
    reference: Callable[[Spec], Array],
    value: Callable[[Spec], Array],
    strictness: Strictness,
) -> Measure:
    at = f"{place}: " if place else ""
    if expected["t"] != "tensor" or actual["t"] != "tensor":
        return _plain(at, expected, actual)
    if expected["shape"] != actual["shape"]:
        detail = f"{at}shape {actual['shape']} instead of {expected['shape']}"
        return Measure(Verdict.SHAPE, detail=detail)
    count = int(np.prod(expected["shape"])) if expected["shape"] else 1
    if expected.get("random"):
        verdict = Verdict.NONDET if expected["dtype"] == actual["dtype"] else Verdict.DTYPE
        return Measure(verdict, count, detail=f"{at}random: only shape and dtype were compared")
    numbers = _numbers(at, expected, reference(expected), value(actual), strictness)
    if expected["dtype"] == actual["dtype"] or numbers.verdict is Verdict.DIVERGED:
        return numbers
    detail = f"{at}dtype {actual['dtype']} instead of {expected['dtype']}"
    return Measure(Verdict.DTYPE, count, numbers.error, numbers.own, numbers.limit, detail)


def _plain(at: str, expected: Spec, actual: Spec) -> Measure:
    if expected["t"] == actual["t"] == "value":
        one, other = expected["v"], actual["v"]
        if one is None and other is None:
            return Measure(Verdict.PASS)
        if isinstance(one, (int, float)) and isinstance(other, (int, float)):
            both_nan = one != one and other != other
            close = both_nan or one == other or abs(one - other) <= 1e-5 * max(1.0, abs(one))
            verdict = Verdict.PASS if close else Verdict.DIVERGED
            return Measure(verdict, 1, detail="" if close else f"{at}{other!r}, torch {one!r}")
        verdict = Verdict.PASS if one == other else Verdict.DIVERGED
        return Measure(verdict, 1, detail="" if one == other else f"{at}{other!r}, torch {one!r}")
    kinds = {"tensor": "a tensor", "value": "a plain value", "opaque": "an object"}
    names = [kinds.get(spec["t"], spec["t"]) for spec in (actual, expected)]
    return Measure(Verdict.SHAPE, detail=f"{at}{names[0]} instead of {names[1]}")


def _numbers(
    at: str, expected: Spec, reference: Array, value: Array, strictness: Strictness
) -> Measure:
    count = int(reference.size)
    if reference.dtype.kind in "biu":
        wrong = int(np.count_nonzero(value != reference))
        if not wrong:
            return Measure(Verdict.PASS, count, 0.0, 0.0, 0.0)
        detail = f"{at}{wrong} of {count} whole numbers differ"
        return Measure(Verdict.DIVERGED, count, wrong / count, 0.0, 0.0, detail)
    if not same_pattern(value, reference):
        detail = f"{at}NaN or infinity at other places"
        return Measure(Verdict.DIVERGED, count, detail=detail, tolerance=math.inf, means=math.inf,
                       spread=spread(value, reference))  # fmt: skip
    judged = _judged(at, expected, reference, value, strictness)
    return replace(
        judged, tolerance=tolerance(value, reference), means=means(value, reference),
        spread=spread(value, reference),
    )  # fmt: skip


def _judged(
    at: str, expected: Spec, reference: Array, value: Array, strictness: Strictness
) -> Measure:
    count = int(reference.size)
    # What is zero but for rounding is measured against the largest of its kind.
    scale = float(expected.get("scale") or 1.0)
    error = relative_error(value, reference) / scale
    own = float(expected.get("own", 0.0)) / scale
    if strictness.elementwise:
        return _elementwise(at, reference, value, error, own, strictness)
    verdict, limit = judge(
        error,
        own,
        float(expected.get("coarse", 0.0)) / scale,
        float(expected["floor"]),
        strictness.k,
    )
    if verdict is Verdict.PASS:
        if own > ROUGH and not expected.get("zero"):
            vague = f"{at}not compared: torch's own rounding moves it by {own:.0e} of its size"
            return Measure(verdict, 0, error, own, limit, vague, Why.VAGUE)
        return Measure(verdict, count, error, own, limit)
    with np.errstate(invalid="ignore"):  # infinity less itself
        gap = float(np.nanmax(np.abs(np.where(np.isfinite(reference), value - reference, 0))))
    detail = (
        f"{at}relative error {error:.2e}, allowed {limit:.2e}; largest gap {gap:.2e}, "
        f"it would need --rtol and --atol of {tolerance(value, reference):.1e}"
    )
    return Measure(verdict, count, error, own, limit, detail)


def _elementwise(
    at: str, reference: Array, value: Array, error: float, own: float, strictness: Strictness
) -> Measure:
    rtol, atol = strictness.rtol or 0.0, strictness.atol or 0.0
    close = np.isclose(value, reference, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return Measure(Verdict.PASS, int(reference.size), error, own, rtol)
    detail = f"{at}{int((~close).sum())} of {reference.size} beyond rtol {rtol} and atol {atol}"
    return Measure(Verdict.DIVERGED, int(reference.size), error, own, rtol, detail)
