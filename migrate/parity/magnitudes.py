"""In: factors. Out: the rung that is climbed on inputs of other sizes, tiny ones or large ones.

An eps, a limit or an approximation that differs may not show on inputs near one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.parity.blame import GUILTY
from migrate.parity.checks import MAGNITUDES, NO_FLOATS, forward_checks
from migrate.parity.exchange import read_index
from migrate.parity.request import Size, has_floats
from migrate.parity.session import Session, forward
from migrate.result import Check


def magnitude_rung(session: Session) -> tuple[tuple[Check, ...], str]:
    """Its checks, or a note why there are none. Raises WorkerError, WorkerLost."""
    if not has_floats(session.torch["inputs"]):
        return (), NO_FLOATS

    def climbed(size: Size) -> tuple[Check, ...]:
        answers = forward(session, False, "pynative", size.root_only, size)
        index = read_index(session.folder / f"eval{size.suffix}")
        return forward_checks(session, MAGNITUDES, "pynative", answers, index)

    return magnitude_checks(session.request.magnitudes, climbed), ""


def magnitude_checks(
    factors: Sequence[float], climbed: Callable[[Size], tuple[Check, ...]]
) -> tuple[Check, ...]:
    """The whole model at each size; and where that fails, every Cell in it."""
    found: list[Check] = []
    for factor in factors:
        checks = climbed(Size(factor, root_only=True))
        if any(check.verdict in GUILTY for check in checks):
            checks = climbed(Size(factor))
        note = f"inputs times {factor:g}"
        found += [
            check.model_copy(update={"detail": f"{note}: {check.detail}" if check.detail else note})
            for check in checks
        ]
    return tuple(found)
