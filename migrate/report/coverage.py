"""In: a record and a verification. Out: how much of the code ran in both, and matched."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from migrate.records.outcomes import Outcome, Verdict
from migrate.records.result import CellPlace, Check, FileResult, ModelResult, Record, Verification

MATCHED = frozenset({Verdict.PASS, Verdict.KERNEL})
FINE = MATCHED | {Verdict.NONDET}


@dataclass(frozen=True)
class ClassState:
    """A Module class of the input: did a Cell made from it run, and did all its checks match?"""

    file: str
    place: CellPlace
    executed: bool
    matched: bool


@dataclass(frozen=True)
class Coverage:
    """Counts of classes, of references inside them, and of checks; ``not_run`` are counted apart.

    A reference counts as executed when it lies in a class of which a Cell ran in both frameworks;
    that does not prove that every line of the class ran.
    """

    classes: tuple[ClassState, ...]
    inside: int
    executed: int
    matched: int
    checks: int
    checks_matched: int
    not_run: int
    elements: int

    @property
    def classes_executed(self) -> int:
        return sum(state.executed for state in self.classes)

    @property
    def classes_matched(self) -> int:
        return sum(state.matched for state in self.classes)


def coverage(record: Record, verification: Verification | None) -> Coverage:
    """Bring both halves of the result together, class by class."""
    checks = _checks_by_class(verification)
    states = tuple(_state(file, place, checks) for file in record.own_files for place in file.cells)
    references = [_references(record, state) for state in states]
    every = [check for model in _models(verification) for check in model.checks]
    return Coverage(
        classes=states,
        inside=sum(references),
        executed=sum(n for n, s in zip(references, states, strict=True) if s.executed),
        matched=sum(n for n, s in zip(references, states, strict=True) if s.matched),
        checks=sum(check.verdict is not Verdict.NOT_RUN for check in every),
        checks_matched=sum(check.verdict in MATCHED for check in every),
        not_run=sum(check.verdict is Verdict.NOT_RUN for check in every),
        elements=sum(check.elements for check in every),
    )


def _models(verification: Verification | None) -> tuple[ModelResult, ...]:
    return verification.models if verification else ()


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _checks_by_class(verification: Verification | None) -> dict[tuple[str, str], list[Check]]:
    found: dict[tuple[str, str], list[Check]] = defaultdict(list)
    for model in _models(verification):
        for check in model.checks:
            found[(check.source or model.source, _short(check.torch_class))].append(check)
    return found


def _state(
    file: FileResult, place: CellPlace, checks: dict[tuple[str, str], list[Check]]
) -> ClassState:
    mine = checks.get((file.source, _short(place.name)), [])
    executed = any(check.elements for check in mine)
    matched = executed and all(_column_matches(group) for group in _columns(mine))
    return ClassState(file.source, place, executed, matched)


def _columns(checks: list[Check]) -> list[list[Check]]:
    found: dict[tuple[str, str], list[Check]] = defaultdict(list)
    for check in checks:
        found[(check.rung, check.mode)].append(check)
    return list(found.values())


def _column_matches(checks: list[Check]) -> bool:
    """Whether, on one rung in one mode, some Cell of a class ran, and all that ran matched."""
    ran = [check for check in checks if check.verdict is not Verdict.NOT_RUN]
    return bool(ran) and all(check.verdict in MATCHED for check in ran)


def _references(record: Record, state: ClassState) -> int:
    file = next(f for f in record.own_files if f.source == state.file)
    return sum(
        state.place.line <= entry.line <= state.place.end_line
        and entry.outcome in (Outcome.CONVERTED, Outcome.HELPER, Outcome.KEPT)
        for entry in file.entries
    )
