"""Count a conversion by outcome, file, API and topic of flags, and what of it ran and matched."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from types import MappingProxyType

from migrate.records.outcomes import Outcome, Verdict
from migrate.records.result import (
    CellPlace,
    Check,
    Entry,
    FileResult,
    Ledger,
    ModelResult,
    Record,
    Verification,
    counted,
)

TOPICS = MappingProxyType(
    {
        "API": "API missing",
        "DEF": "defaults differ",
        "DTY": "dtype",
        "INP": "in-place or alias",
        "GRF": "graph mode syntax",
        "DAT": "data pipeline",
        "LOP": "training loop",
        "OPT": "optimizer or learning rate",
        "DEV": "mode or device",
        "CKP": "checkpoint",
        "RNG": "randomness",
        "ENV": "environment",
        "INT": "error of the converter",
        "OWN": "rule of your own",
        "SUP": "comment that silences a flag",
    }
)


def topic(code: str) -> str:
    """The topic of a code, or "other" for letters that docs/flags.md does not name."""
    return TOPICS.get(code.rstrip("0123456789"), "other")


COLUMNS = ("converted", "kept", "helper", "flagged", "out_of_scope")


@dataclass(frozen=True)
class Tally:
    """One line of a ledger table; ``ledger.total`` was counted apart from the parts."""

    label: str
    ledger: Ledger


@dataclass(frozen=True)
class Flag:
    """A reference that is flagged, or taken for granted, and its place."""

    file: str
    entry: Entry


@dataclass(frozen=True)
class FlagGroup:
    """All flags of one code, in order of file and line."""

    code: str
    topic: str
    flags: tuple[Flag, ...]


@dataclass(frozen=True)
class Note:
    """An API difference that changes no number, and how often it was met."""

    name: str
    target: str
    text: str
    count: int


def by_file(record: Record) -> tuple[Tally, ...]:
    """One line for each file that holds at least one reference."""
    along = {one.name: f"{one.name} {one.version}, converted along" for one in record.along}
    return tuple(
        Tally(f"{f.source} ({along[f.package]})" if f.package in along else f.source, f.ledger)
        for f in record.files
        if f.ledger.total
    )


def by_api(record: Record) -> tuple[Tally, ...]:
    """One line for each torch name, most frequent first."""
    entries: dict[str, list[Entry]] = defaultdict(list)
    for file in record.files:
        for entry in file.entries:
            entries[entry.name].append(entry)
    tallies = [Tally(name, counted(found)) for name, found in entries.items()]
    return tuple(sorted(tallies, key=lambda t: (-t.ledger.total, t.label)))


def complaints(record: Record) -> tuple[str, ...]:
    """What does not add up; empty when everything does."""
    found = [_sum_complaint(file) for file in record.files]
    found += [_entry_complaint(file) for file in record.files]
    return tuple(text for text in found if text)


def _sum_complaint(file: FileResult) -> str:
    if file.ledger.adds_up:
        return ""
    parts = sum(getattr(file.ledger, column) for column in COLUMNS)
    return f"{file.source}: {file.ledger.total} references were found, the outcomes give {parts}"


def _entry_complaint(file: FileResult) -> str:
    listed = counted(file.entries)
    wrong = [
        f"{column.replace('_', ' ')} {getattr(file.ledger, column)}, listed {parts}"
        for column in COLUMNS
        if getattr(file.ledger, column) != (parts := getattr(listed, column))
    ]
    return f"{file.source}: ledger and list differ: {'; '.join(wrong)}" if wrong else ""


def flag_groups(record: Record) -> tuple[FlagGroup, ...]:
    """Flags by code; the codes in alphabetical order."""
    groups: dict[str, list[Flag]] = defaultdict(list)
    for file in record.files:
        for entry in file.entries:
            if entry.outcome is Outcome.FLAGGED:
                groups[entry.code].append(Flag(file.source, entry))
    return tuple(
        FlagGroup(code, topic(code), tuple(sorted(flags, key=_place)))
        for code, flags in sorted(groups.items())
    )


def _place(flag: Flag) -> tuple[str, int, int]:
    return (flag.file, flag.entry.line, flag.entry.column)


def assumptions(record: Record) -> tuple[Flag, ...]:
    """The references whose decision rests on something taken for granted, by place."""
    found = [Flag(f.source, entry) for f in record.files for entry in f.entries if entry.assumption]
    return tuple(sorted(found, key=_place))


def notes(record: Record) -> tuple[Note, ...]:
    """The notes of the rows used, each once, by torch name."""
    seen = Counter(
        (entry.name, entry.target, entry.note)
        for file in record.files
        for entry in file.entries
        if entry.note
    )
    return tuple(Note(*key, number) for key, number in sorted(seen.items()))


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
