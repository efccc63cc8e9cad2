"""Assess what convert would do of a file or folder, and what work it leaves; as text, md, JSON."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from pydantic import Field

from migrate import __version__
from migrate.evidence import store
from migrate.mapping.table import Table
from migrate.records.outcomes import Outcome
from migrate.records.result import CellPlace, Entry, FileResult, Frozen, Ledger, counted, summed
from migrate.report.markdown import escape
from migrate.report.work import MEANS, WORK, Work, work_of
from migrate.workspace import choices_file
from migrate.workspace.cache import Cache, Kept
from migrate.workspace.conversion import Conversion
from migrate.workspace.request import Request

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
    chosen = choices_file.of(source)
    nowhere = source.resolve().parent / f".{source.name}.scanned"  # never made: nothing is written
    request = Request(source, nowhere, target, "", exclude, jobs, mappings, choices=chosen)
    return assessed(request, lambda: rows, None, progress)


def assessed(
    request: Request,
    rows: Callable[[], Table],
    kept: Cache | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Scan:
    """Plan a conversion and count, or return what an earlier run in the cache has counted."""

    def make() -> Kept:
        from migrate.workspace import project

        made = project.convert(request, progress)
        found = _assessment(made, request.source, rows(), request.target)
        parts = {"assessment.json": found.model_dump_json().encode(), "status": b"%d" % made.status}
        return Kept(parts, made.looked, made.status != 3)

    if kept is None or request.mappings:  # evidence of rows of one's own lies beside them
        parts = make().parts
    else:
        parts = kept.got("scan", request, (), make)
    found = Assessment.model_validate_json(parts["assessment.json"])
    return Scan(found, int(parts["status"]))


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


# -- shown -------------------------------------------------------------------------------------

FORMATS = ("text", "json", "md")
_PLACES = 10  # places of one code that are listed
_APIS = 40  # names that are listed; JSON has all of them


def render(found: Assessment, format: str = "text", every: bool = False) -> str:
    """The assessment with a final newline; ``every``: leave no place or name out.

    Raises ValueError for a format that does not exist.
    """
    match format:
        case "json":
            return found.model_dump_json(indent=2) + "\n"
        case "md":
            return "\n".join(_markdown(found, every)) + "\n"
        case "text":
            return "\n".join(_text(found, every)) + "\n"
    raise ValueError(f"scan format {format!r} does not exist; choose one of {', '.join(FORMATS)}")


def _percent(count: Count) -> str:
    if count.share is None:
        return "none"
    # 99.96 % is not 100: never round up to everything
    return f"{int(count.share * 1000) / 10:.1f} %"


def _summary(found: Assessment) -> Iterator[tuple[str, str]]:
    ledger = found.ledger
    for label, count in (
        ("References", found.references), ("Cells", found.cells), ("Files", found.files)
    ):  # fmt: skip
        yield (
            label,
            f"{_percent(count)} convert without a flag ({count.clean:,} of {count.total:,})",
        )
    parts = (
        f"{ledger.converted:,} converted",
        f"{ledger.helper:,} by helpers",
        f"{ledger.kept:,} kept",
        f"{ledger.stopping:,} flagged",
        *([f"{ledger.graph:,} for graph mode"] if ledger.graph else []),
        f"{ledger.out_of_scope:,} out of scope",
    )
    yield "By outcome", f"{ledger.total:,} = {' + '.join(parts)}"


def _verified(found: Assessment) -> str:
    """Which share of what is decided by rows rests on rows that ran in both frameworks."""
    by_rows = [api for api in found.apis if api.proof]
    uses = sum(api.uses - api.ledger.flagged for api in by_rows)
    done = sum(api.uses - api.ledger.flagged for api in by_rows if api.proof == "verified")
    text = _percent(Count(clean=done, total=uses))
    return f"{text} of the uses that a row decides rest on a row verified as it is now"


def _groups(found: Assessment) -> Iterator[tuple[str, list[Place]]]:
    for code, group in groupby(found.places, key=lambda place: place.code):
        yield code, list(group)


def _where(place: Place) -> str:
    cell = f"cell {place.cell}:" if place.cell else ""
    return f"{place.file}:{cell}{place.line}:{place.column}"


def _says(place: Place) -> str:
    step = f"; {place.next_step}" if place.next_step else ""
    return f"{place.name}: {place.reason}{step}"


def _cut(items: Sequence[Place], every: bool) -> Sequence[Place]:
    return items if every else items[:_PLACES]


def _becomes(api: Api) -> str:
    """What becomes of a name, in a few words."""
    # "... .sum" and "....sum" are calls of a method of something
    shown = [t.replace("... ", "...").replace("....", ".") for t in api.targets]
    parts = [", ".join(dict.fromkeys(shown))] if shown else []
    parts += [f"{code} {count}" for code, count in api.flags.items()]
    return "; ".join(parts)


# -- terminal ---------------------------------------------------------------------------------


def _text(found: Assessment, every: bool) -> Iterator[str]:
    yield f"{found.source}: {found.lines:,} lines, target {found.target}; nothing is written"
    for label, value in _summary(found):
        yield f"{label + ':':<12}{value}"
    yield f"{'Evidence:':<12}{_verified(found)}"
    yield from (f"{'Unread:':<12}{line}" for line in found.unread)
    yield from (f"{'Skipped:':<12}{count}: {why}" for why, count in found.skipped.items())
    yield ""
    yield from _text_places(found, every)
    yield from _text_apis(found.apis, every)


def _text_places(found: Assessment, every: bool) -> Iterator[str]:
    if not found.places:
        yield "Nothing is flagged."
        yield ""
        return
    seen = ""
    for code, places in _groups(found):
        kind = places[0].work
        if kind != seen:
            seen = kind
            yield f"{kind.capitalize()} ({found.work[kind]} places): {MEANS[kind]}"
        for place in _cut(places, every):
            yield f"  {_where(place)} {code} {_says(place)}"
        if len(places) > len(_cut(places, every)):
            yield f"  ... {code}: {len(places) - _PLACES} more places (--all)"
    yield ""


def _text_apis(apis: Sequence[Api], every: bool) -> Iterator[str]:
    shown = apis if every else apis[:_APIS]
    width = max((len(api.name) for api in shown), default=0)
    yield f"{'Uses':>6} {'flagged':>8}  {'evidence':<12}  {'Name':<{width}}  Becomes"
    for api in shown:
        flagged = api.ledger.flagged or ""
        yield (
            f"{api.uses:>6} {flagged:>8}  {api.proof:<12}  {api.name:<{width}}  {_becomes(api)}"
        ).rstrip()
    if len(apis) > len(shown):
        yield f"... {len(apis) - len(shown)} more names (--all, or --format json)"


# -- Markdown ---------------------------------------------------------------------------------


def _markdown(found: Assessment, every: bool) -> Iterator[str]:
    yield f"# Assessment of `{found.source}`"
    yield ""
    yield f"{found.lines:,} lines, target {found.target}, torch2mindspore {found.tool_version}."
    yield ""
    yield from _rows(("", ""), [*_summary(found), ("Evidence", _verified(found))])
    yield from (f"- not read: {escape(line)}" for line in found.unread)
    yield from ("", "## Hard places", "")
    if not found.places:
        yield "Nothing is flagged."
    for code, places in _groups(found):
        yield f"### {code} ({places[0].work}, {len(places)})"
        yield ""
        for place in _cut(places, every):
            yield f"- `{_where(place)}` {escape(_says(place))}"
        if len(places) > len(_cut(places, every)):
            yield f"- and {len(places) - _PLACES} more"
        yield ""
    yield from ("", "## Names", "")
    shown = found.apis if every else found.apis[:_APIS]
    yield from _rows(
        ("Name", "Uses", "Flagged", "Evidence", "Becomes"),
        [(f"`{a.name}`", a.uses, a.ledger.flagged, a.proof, escape(_becomes(a))) for a in shown],
    )
    if len(found.apis) > len(shown):
        yield f"\nand {len(found.apis) - len(shown)} more names"


def _rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    for line in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(map(str, line)) + " |"
