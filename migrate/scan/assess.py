"""Assess what convert would do of a file or folder, and what kind of work it leaves to people."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from migrate import __version__
from migrate.evidence import store
from migrate.mapping.table import Table
from migrate.records.outcomes import Outcome
from migrate.records.result import CellPlace, Entry, FileResult, Frozen, Ledger, counted, summed
from migrate.workspace import project
from migrate.workspace.assembly import Conversion

Work = Literal["design", "rewrite", "check"]

# Hardest first: what a person reads from top to bottom.
WORK: tuple[Work, ...] = ("design", "rewrite", "check")
MEANS = {
    "design": "another structure is needed: loops, data, optimizers, processes, libraries",
    "rewrite": "a line needs another way to say it",
    "check": "an annotation, or a look at the line, is enough",
}
_TOPICS: dict[str, Work] = {
    "LOP": "design",
    "OPT": "design",
    "DAT": "design",
    "CKP": "design",
    "DEV": "check",
}
# Codes that ask for more or less than their topic; docs/flags.md says what each means.
_CODES: dict[str, Work] = {
    "API100": "check",
    "API102": "check",
    "API103": "check",
    "API106": "check",
    "API107": "check",
    "API108": "check",
    "API109": "check",
    "API113": "check",
    "API114": "check",
    "ENV113": "design",
    "ENV114": "check",
    "ENV115": "check",
    "ENV501": "design",
    "ENV510": "check",
    "ENV511": "check",
    "ENV512": "check",
    "RNG101": "check",
    "RNG102": "check",
}


def work_of(code: str) -> Work:
    """The kind of work of a code; a code that is not listed is a line to rewrite."""
    return _CODES.get(code) or _TOPICS.get(code.rstrip("0123456789"), "rewrite")


SCHEMA_VERSION = 1
Proof = Literal["verified", "stale", "not executed", ""]


class Api(Frozen):
    """One torch name: how often it is used, and what becomes of its uses.

    ``targets`` are the new names, most frequent first; ``proof`` is the state of the evidence of
    its rows, the worst of them ("" where no row decides); ``flags`` counts its flag codes.
    """

    name: str
    uses: int
    files: int
    ledger: Ledger
    targets: tuple[str, ...] = ()
    proof: Proof = ""
    flags: dict[str, int] = Field(default_factory=dict)


class Place(Frozen):
    """One place that a person has to look at. ``file`` is what an editor opens; in a notebook
    ``cell`` is the number of the cell and ``line`` counts in it."""

    file: str
    line: int
    column: int
    code: str
    work: Work
    name: str
    reason: str
    next_step: str = ""
    cell: int = 0


class Count(Frozen):
    """``clean`` of ``total``: what can be converted without a flag."""

    clean: int = 0
    total: int = 0

    @property
    def share(self) -> float | None:
        """From 0 to 1; None where there is nothing."""
        return self.clean / self.total if self.total else None


class Assessment(Frozen):
    """``torch2ms scan --format json``. ``references`` leaves out what is out of scope.

    ``files`` counts files that mention torch, ``cells`` the Module classes in them; ``unread`` says
    why a file cannot be read.
    """

    schema_version: int = SCHEMA_VERSION
    tool_version: str = ""
    source: str
    target: str
    lines: int
    ledger: Ledger
    references: Count
    files: Count
    cells: Count
    work: dict[Work, int]
    apis: tuple[Api, ...]
    places: tuple[Place, ...]
    unread: tuple[str, ...] = ()
    skipped: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True)
class Scan:
    """The assessment, and the exit code that the conversion itself would have."""

    assessment: Assessment
    status: int


def assess(
    source: Path,
    rows: Table,
    target: Literal["portable", "mint"] = "portable",
    exclude: tuple[str, ...] = (),
    jobs: int = 0,
    mappings: tuple[Path, ...] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Scan:
    """Plan the conversion of ``source`` and count.

    Raises:
        Problem: the input is missing, unreadable, or holds no Python.
    """
    nowhere = source.resolve().parent / f".{source.name}.scanned"  # never made: nothing is written
    request = project.Request(source, nowhere, target, "", exclude, jobs, mappings)
    conversion = project.convert(request, progress)
    return Scan(_assessment(conversion, source, rows, target), conversion.status)


def _assessment(conversion: Conversion, source: Path, rows: Table, target: str) -> Assessment:
    record = conversion.record
    files = [file for file in record.own_files if file.ledger.total or file.cells]
    ledger = summed(record.own_files)
    found = sorted(_places(conversion, source), key=_hardest_first)
    cells = [_is_clean(file, cell) for file in files for cell in file.cells]
    return Assessment(
        tool_version=__version__,
        source=str(source),
        target=target,
        lines=sum(file.lines for file in record.own_files),
        ledger=ledger,
        references=Count(
            clean=ledger.converted + ledger.kept + ledger.helper,
            total=ledger.total - ledger.out_of_scope,
        ),
        files=Count(clean=sum(not f.ledger.flagged for f in files), total=len(files)),
        cells=Count(clean=sum(cells), total=len(cells)),
        work={kind: sum(p.work == kind for p in found) for kind in WORK},
        apis=_apis(record.own_files, _Proofs(rows, target)),
        places=tuple(found),
        unread=tuple(f"{f.where}: {f.what}: {f.why}" for f in conversion.failures),
        skipped=dict(Counter(f.reason for f in record.files if f.status == "skipped")),
    )


def _is_clean(file: FileResult, cell: CellPlace) -> bool:
    lines = (entry.line for entry in file.entries if entry.outcome is Outcome.FLAGGED)
    return not any(cell.line <= line <= cell.end_line for line in lines)


def _places(conversion: Conversion, source: Path) -> Iterator[Place]:
    for file in conversion.record.own_files:
        path = str(source / file.source) if source.is_dir() else str(source)
        for entry in file.entries:
            if entry.outcome is Outcome.FLAGGED:
                cell, line = _line(conversion, file, entry)
                yield Place(
                    file=path,
                    line=line,
                    column=entry.column,
                    code=entry.code,
                    work=work_of(entry.code),
                    name=entry.name,
                    reason=entry.reason,
                    next_step=entry.next_step,
                    cell=cell,
                )


def _line(conversion: Conversion, file: FileResult, entry: Entry) -> tuple[int, int]:
    notebook = conversion.notebooks.get(file.source)
    return notebook.place(entry.line) if notebook else (0, entry.line)


def _hardest_first(place: Place) -> tuple[int, str, str, int, int, int]:
    return WORK.index(place.work), place.code, place.file, place.cell, place.line, place.column


@dataclass(frozen=True)
class _Proofs:
    """The state of the evidence of rows; templates of mint are not executed here."""

    rows: Table
    target: str

    def of(self, keys: Sequence[str], recorded: Mapping[str, store.RowEvidence]) -> Proof:
        states = {self._state(key, recorded) for key in keys if self.rows.row(key) is not None}
        order: tuple[Proof, ...] = ("not executed", "stale", "verified")
        return next((one for one in order if one in states), "")

    def _state(self, key: str, recorded: Mapping[str, store.RowEvidence]) -> Proof:
        found = (
            None if self.target == "mint" and "mint" in self.rows.raw[key] else recorded.get(key)
        )
        if found is None or not found.elements:
            return "not executed"
        return "verified" if found.passed and store.is_fresh(self.rows, key, recorded) else "stale"


def _apis(files: Sequence[FileResult], proofs: _Proofs) -> tuple[Api, ...]:
    uses: dict[str, list[tuple[str, Entry]]] = defaultdict(list)
    for file in files:
        for entry in file.entries:
            uses[entry.name].append((file.source, entry))
    recorded = store.read(proofs.rows)
    made = [_api(name, some, proofs, recorded) for name, some in uses.items()]
    return tuple(sorted(made, key=lambda api: (-api.uses, api.name)))


def _api(
    name: str,
    uses: Sequence[tuple[str, Entry]],
    proofs: _Proofs,
    recorded: Mapping[str, store.RowEvidence],
) -> Api:
    targets = Counter(entry.target for _, entry in uses if entry.target)
    flags = Counter(entry.code for _, entry in uses if entry.outcome is Outcome.FLAGGED)
    keys = sorted({entry.row for _, entry in uses if entry.row})
    return Api(
        name=name,
        uses=len(uses),
        files=len({file for file, _ in uses}),
        ledger=counted(entry for _, entry in uses),
        targets=tuple(target for target, _ in targets.most_common(3)),
        proof=proofs.of(keys, recorded) if keys else "",
        flags=dict(sorted(flags.items())),
    )
