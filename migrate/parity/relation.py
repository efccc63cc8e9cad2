"""In: what torch gave and what MindSpore gave instead. Out: how the numbers relate, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from migrate.parity.exchange import Array
from migrate.parity.tolerance import relative_error

CLOSE = 1e-5
SIZES = 4096  # a number of values that a variance may be over


def relation(torch: Array, mindspore: Array, call: str = "") -> str:
    """The first known relation that holds, or nothing; ``call`` is the text of torch's call."""
    if min(torch.size, mindspore.size) < 2 or torch.dtype.kind not in "f":
        return ""
    wanted, found = torch.astype(np.float64), mindspore.astype(np.float64)
    if not (np.isfinite(wanted).all() and np.isfinite(found).all()):
        return ""
    return next((text for text, value in _known(wanted, found, call) if _equal(value, found)), "")


def _equal(value: Array, found: Array) -> bool:
    return value.shape == found.shape and relative_error(value, found) <= CLOSE


def _known(wanted: Array, found: Array, call: str) -> Iterator[tuple[str, Array]]:
    if wanted.shape != found.shape:
        if sorted(wanted.shape) == sorted(found.shape) and wanted.ndim == 2:
            yield "torch's, transposed", wanted.T
        elif wanted.size == found.size:
            yield "torch's in another shape", wanted.reshape(found.shape)
        return
    if wanted.ndim > 1 and wanted.shape[-1] == wanted.shape[-2]:
        yield "torch's with its last two axes exchanged", np.swapaxes(wanted, -1, -2)
    norm = float(np.vdot(wanted, wanted))
    factor = float(np.vdot(wanted, found)) / norm if norm else 0.0
    yield _factor(factor, call), wanted * factor
    yield "torch's plus a constant", wanted + (found - wanted).mean()
    for axis in range(wanted.ndim):
        yield f"torch's in the opposite order along axis {axis}", np.flip(wanted, axis)


def _factor(factor: float, call: str) -> str:
    """What a constant factor says: n / (n - 1) is the other kind of variance."""
    for name, root in (("variance", 1), ("std, the standard deviation", 2)):
        if name[:3] not in call:
            continue
        for ratio, which in ((factor**root, "without"), (factor**-root if factor else 0.0, "with")):
            size = round(1 / (1 - ratio)) if 0 < ratio < 1 else 0
            if 1 < size <= SIZES and abs(ratio - (size - 1) / size) < CLOSE / size:
                sense = f"the {name} {which} Bessel's correction (ddof) over {size} values"
                return f"torch's times {factor:.6g}: {sense}"
    return f"torch's times {factor:.6g}"
