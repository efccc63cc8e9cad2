"""In: the numbers of both sides. Out: how they lie: a histogram of the error, and both in brief."""

from __future__ import annotations

from typing import Any

import numpy as np

from migrate.parity.exchange import Array

EDGES = tuple(10.0**power for power in range(-9, 1))
BINS = len(EDGES) + 2  # exact, below the first edge, between two edges, from the last one on


def spread(value: Array, reference: Array) -> dict[str, Any]:
    """What `migrate.result.Spread` says, as plain values; both have the same shape.

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
