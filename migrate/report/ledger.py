"""Count the ledger of a conversion by outcome, by file, by API and by topic of its flags."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from types import MappingProxyType

from migrate.records.outcomes import Outcome
from migrate.records.result import Entry, FileResult, Ledger, Record, counted

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
