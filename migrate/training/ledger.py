"""In: what became of a restructured file. Out: the same, at the places of the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrate.emit import Emitted
from migrate.outcomes import Edit, Outcome, Refusal
from migrate.result import CellPlace, Entry, OpenPlace
from migrate.training.staged import Staged

BACKWARD = "torch.Tensor.backward"
STEP = "part of a training step"


def entries(staged: Staged, found: Sequence[Entry], emitted: Emitted | None) -> tuple[Entry, ...]:
    """The entries in the order of the original, with those that a training step has taken over.

    References that restructuring itself wrote (two imports, a base class) are left out; what is
    flagged in its text is counted at the step that it belongs to.
    """
    kept = []
    for entry in found:
        place = staged.origin(entry.line, entry.column)
        if place is None and entry.outcome is Outcome.FLAGGED:
            place = staged.below(entry.line)
        if place is None:
            continue
        kept.append(entry.model_copy(update={"line": place[0], "column": place[1]}))
    reasons = dict(staged.loops)
    for site in staged.done:
        line = emitted.line(staged.offset(site.span.start)) if emitted else 0
        kept.append(
            Entry(
                name=site.name,
                outcome=Outcome.CONVERTED,
                line=site.line,
                column=site.column,
                output_line=line,
                target="nn.TrainOneStepCell",
                note=_note(reasons.get(site.line, "") if site.name == BACKWARD else ""),
            )
        )
    return _evaluated(staged, sorted(kept, key=lambda e: (e.line, e.column)))


def left_open(staged: Staged, found: Sequence[OpenPlace]) -> tuple[OpenPlace, ...]:
    """The places that nobody can assign, where they stand in the original."""
    kept = []
    for one in found:
        place = staged.origin(one.line, one.column)
        if place is not None:
            kept.append(one.model_copy(update={"line": place[0], "column": place[1]}))
    return tuple(kept)


def _evaluated(staged: Staged, found: list[Entry]) -> tuple[Entry, ...]:
    """The entries, the first of each evaluation loop that Model.eval does not run with a note."""
    for first, last, reason in staged.evaluations:
        at = next((i for i, e in enumerate(found) if first <= e.line <= last), None)
        if at is not None:
            note = f"the evaluation loop is not run by Model: {reason}"
            note = f"{found[at].note}; {note}" if found[at].note else note
            found[at] = found[at].model_copy(update={"note": note})
    return tuple(found)


def _note(stays: str) -> str:
    return f"{STEP}; its loop is not run by Model: {stays}" if stays else STEP


def explained(staged: Staged, found: Sequence[Edit | Refusal]) -> tuple[Edit | Refusal, ...]:
    """A backward that is in no training step says why it is not."""
    reasons = dict(staged.unclear)
    changed: list[Edit | Refusal] = []
    for decision in found:
        if isinstance(decision, Refusal) and decision.site.name == BACKWARD:
            place = staged.origin(decision.site.line, decision.site.column)
            reason = reasons.get(place[0]) if place else None
            decision = replace(decision, reason=reason) if reason else decision
        changed.append(decision)
    return tuple(changed)


def cells(staged: Staged, found: Sequence[CellPlace]) -> tuple[CellPlace, ...]:
    """The Modules of the original; the loss Cells have no partner in it."""
    kept = []
    for cell in found:
        first = staged.origin(cell.line, 1)
        if cell.name in staged.cells or first is None:
            continue
        length = cell.end_line - cell.line
        kept.append(cell.model_copy(update={"line": first[0], "end_line": first[0] + length}))
    return tuple(kept)
