"""Turn what the workers answer into Checks and Rungs: what counts, and the worst of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from migrate.parity.compare import Measure, merge, worst
from migrate.parity.messages import Ran, Trained
from migrate.parity.session import Mode, Session
from migrate.records.outcomes import Verdict, Why
from migrate.records.result import Check, Curve, Rung, Spread

PARAMETERS, START, MAGNITUDES, REGIMES, CHECKPOINT = (
    "parameters", "initial values", "magnitudes", "regimes", "checkpoint"
)  # fmt: skip
FORWARD = ("forward eval", "forward train")
TRAINING = ("loss", "optimizer step", "optimizer state", "steps")
FINE = (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET)
NUMERIC = (Verdict.DIVERGED, Verdict.SHAPE, Verdict.DTYPE)
GUILTY = (*NUMERIC, Verdict.BLOCKED)


def local_of(answers: Sequence[Ran]) -> dict[str, list[Measure]]:
    """Return what each module shows on torch's input."""
    return _by_path((answer.path, answer.local) for answer in answers)


def inside_of(answers: Sequence[Ran]) -> dict[str, list[Measure]]:
    """Return what each module shows inside the whole model."""
    return _by_path((answer.path, answer.cumulative) for answer in answers)


def _by_path(measures: Iterable[tuple[str, Measure | None]]) -> dict[str, list[Measure]]:
    found: dict[str, list[Measure]] = {}
    for path, measure in measures:
        if measure is not None:
            found.setdefault(path, []).append(measure)
    return found


def order_of(index: Mapping[str, Any]) -> dict[str, int]:
    """Return when the first recorded call of each module ended."""
    return {entry["path"]: entry["order"] for entry in reversed(index["calls"])}


def owner(name: str) -> str:
    """Return the module that a tensor belongs to; inputs are the whole model's."""
    return "" if name.startswith("input[") else name.rpartition(".")[0]


def check_of(
    session: Session[Any], rung: str, mode: Mode, path: str, order: int, chosen: Measure, *,
    local: float | None = None, inside: Measure | None = None, detail: str | None = None,
    cell: str | None = None,
) -> Check:  # fmt: skip
    """Return a Check with places and classes of both partners; ``inside``: in the whole model."""
    cell = session.partner(path) if cell is None else cell
    module, own = session.modules.get(path, {}), {} if cell is None else session.cells.get(cell, {})
    return Check(
        rung=rung, mode=mode, torch_path=path, mindspore_path=cell if cell and own else "",
        torch_class=module.get("class", ""), mindspore_class=own.get("class", ""),
        torch_line=module.get("line", 0), mindspore_line=own.get("line", 0),
        source=module.get("file", ""), order=order, verdict=chosen.verdict,
        elements=chosen.elements, local=_finite(local),
        cumulative=_finite(inside.error) if inside else None, own=_finite(chosen.own),
        limit=_finite(chosen.limit), cumulative_limit=_finite(inside.limit) if inside else None,
        detail=chosen.detail if detail is None else detail, why=chosen.why,
        spread=Spread.model_validate(chosen.spread) if chosen.spread else None,
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    """Return the largest number for an error beyond all numbers: JSON has no infinity."""
    return None if value is None or value != value else min(value, 1.7e308)


def training_checks(
    session: Session[Any], rung: str, mode: Mode, answers: Sequence[Ran],
    earlier: Sequence[Check],
) -> tuple[Check, ...]:  # fmt: skip
    """Return one Check a module with weights that move, and one for the losses (the root).

    Where the gradients of a module fail already, what its weights do follows from that.
    """
    found: dict[str, list[Measure]] = {}
    for answer in answers:
        if answer.rung in ("", rung):
            found.setdefault(owner(answer.name), []).append(answer.measure)
    failed = any(check.verdict in NUMERIC and check.mode == mode for check in earlier)
    order = session.positions
    checks = []
    for path, measures in found.items():
        chosen = merge(measures)
        if chosen.verdict in FINE and not chosen.elements:
            chosen = chosen.called(Verdict.NOT_RUN)
        if failed and chosen.verdict in NUMERIC:
            chosen = chosen.called(Verdict.PROPAGATED)
        checks.append(
            check_of(session, rung, mode, path, order.get(path, 0), chosen, inside=chosen)
        )
    return tuple(checks)


def curve_of(told: Trained) -> Curve | None:
    """Return the losses that were met; None where one is no number, which JSON does not know."""
    sides = {"torch": told.torch, "reference": told.reference, "mindspore": told.mindspore}
    finite = all(math.isfinite(value) for side in sides.values() for value in side)
    return Curve(**sides) if finite else None


def is_counted(rung: Rung) -> bool:
    """Return whether a rung counts for the verdict of its model: it had something to compare."""
    return rung.why is None


def summed(
    name: str, mode: str, checks: Sequence[Check], seconds: float = 0.0, note: str = ""
) -> Rung:
    """Return the rung with its worst verdict; NOT_RUN where it compared no number at all.

    ``note`` is a Why where the rung had nothing to compare.
    """
    counted = [c for c in checks if c.verdict is not Verdict.NOT_RUN or c.why is None]
    elements = sum(check.elements for check in counted)
    verdict = worst([check.verdict for check in counted])
    if not elements and verdict is Verdict.PASS:
        verdict = Verdict.NOT_RUN
    if checks and all(check.why is Why.NO_GRADIENT for check in checks):
        note = Why.NO_GRADIENT
    bad = [check for check in counted if check.verdict is verdict and verdict is not Verdict.PASS]
    vague = [c for c in checks if c.verdict is Verdict.NOT_RUN and c.why is Why.VAGUE]
    if vague and not note:
        note = f"{len(vague)} Cells not compared, the first: {vague[0].detail}"
    first = f"{bad[0].torch_path or 'the whole model'}: {bad[0].detail}" if bad else ""
    return Rung(
        name=name, mode=mode, verdict=verdict, checks=len(counted), elements=elements,
        seconds=round(seconds, 2), detail="; ".join(text for text in (first, note) if text),
        why=note if isinstance(note, Why) and not bad else None,
    )  # fmt: skip
