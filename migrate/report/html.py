"""In: a record, a verification and both trees. Out: one self-contained HTML page."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from migrate.records.result import Entry, FileResult, ModelResult, Record, Verification
from migrate.report import headline, ledger
from migrate.report.diff import Block, blocks, texts
from migrate.report.models import model_views, size
from migrate.report.work import MEANS, work_of

# Bytes. What models and open diffs may take together, and the diffs; a diff for which no room is
# left is packed, a tenth of its size, and unpacked when its file is opened.
ROOM = 1_750_000
DIFF_BUDGET = 900_000
PACKED_BUDGET = 1_000_000
ROW_COST = 140
ALONG = "Converted along from the installed {}: what is used of it, so no file compares with it."
LEFT_OUT = "The diff is left out to keep this page small; compare the files with any diff tool."
SCRIPT = "The diff opens in a browser that runs scripts."


@dataclass(frozen=True)
class FileView:
    """A file and its diff; ``message`` stands in place of what cannot be shown.

    ``packed``: the diff, deflated and in base64, where the page has no room for it as it is.
    ``left``, ``right``: the lines of both sides.
    """

    number: int
    file: FileResult
    blocks: tuple[Block, ...]
    message: str
    edited: int
    unchanged: int
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    packed: str = ""

    @property
    def complete(self) -> bool:
        """Whether every line is on the page, so that a link to it leads somewhere."""
        return 0 < self.edited + self.unchanged == sum(len(block.rows) for block in self.blocks)


@dataclass(frozen=True)
class FlagLine:
    """A flag with the line that it is about, before and after."""

    file: str
    entry: Entry
    before: str
    after: str


@dataclass(frozen=True)
class FlagView:
    """The flags of one code; ``work``: what kind of work they ask for."""

    code: str
    topic: str
    work: str
    flags: tuple[FlagLine, ...]


def page(
    record: Record, verification: Verification | None, source_root: Path, output_root: Path
) -> str:
    """The page: no network, no file beside it. Never raises for missing or odd files."""
    seen = ledger.coverage(record, verification)
    models = tuple(model_views(record, verification, source_root, output_root))
    room = min(DIFF_BUDGET, ROOM - size(models))
    files = _file_views(record, source_root, output_root, room)
    by_source = {view.file.source: view for view in files}
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            groups=[_shown(group, by_source) for group in ledger.flag_groups(record)],
            works=tuple(MEANS),
            record=record,
            verification=verification,
            headline=headline.headline(record, verification, seen),
            cards=headline.cards(record, verification, seen),
            seen=seen,
            columns=ledger.COLUMNS,
            by_file=ledger.by_file(record),
            by_api=ledger.by_api(record),
            complaints=ledger.complaints(record),
            notes=ledger.notes(record),
            assumptions=ledger.assumptions(record),
            files=files,
            numbers={view.file.source: view.number for view in files if view.complete},
            aside=[f for f in record.files if f.status != "converted"],
            models=models,
            cautions=headline.cautions(record, verification),
            script=SCRIPT,
            commands=commands(record, verification, output_root),
        )
    )


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("migrate.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _file_views(
    record: Record, source_root: Path, output_root: Path, left: int
) -> tuple[FileView, ...]:
    """The files with their diffs: those with flags first have room on the page as they are."""
    converted = [file for file in record.files if file.status == "converted"]
    order = sorted(range(len(converted)), key=lambda n: (not converted[n].ledger.flagged, n))
    views: dict[int, FileView] = {}
    room = PACKED_BUDGET
    for place in order:
        view = _file_view(place + 1, converted[place], source_root, output_root)
        if (cost := _cost(view.blocks)) <= left:
            left -= cost
        else:
            view = _packed(view, room)
            room -= len(view.packed)
        views[place] = view
    return tuple(views[place] for place in range(len(converted)))


def _packed(view: FileView, room: int) -> FileView:
    """Pack a diff, to be unpacked when its file is opened."""
    parts = _environment().get_template("parts.html.j2").module
    text = str(parts.diff_body(view))  # type: ignore[attr-defined]
    data = base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")
    if len(data) > room:
        return replace(view, blocks=(), message=f"{view.message} {LEFT_OUT}".strip())
    return replace(view, packed=data)


def _file_view(number: int, file: FileResult, source_root: Path, output_root: Path) -> FileView:
    if file.package:
        return FileView(number, file, (), ALONG.format(file.package), 0, 0)
    found = texts(file, source_root, output_root)
    if found.problem:
        return FileView(number, file, (), found.problem, 0, 0)
    parts = blocks(found.before, found.after, file.entries, file.source.endswith(".py"))
    rows = [row for block in parts for row in block.rows]
    edited = sum(row.kind != "same" for row in rows)
    left, right = (tuple(text.split("\n")) for text in (found.before, found.after))
    return FileView(
        number, file, parts, found.warning, edited, len(rows) - edited, left=left, right=right
    )


def _cost(parts: Sequence[Block]) -> int:
    return sum(
        ROW_COST + len(row.left_html) + len(row.right_html) + 250 * len(row.entries)
        for block in parts
        for row in block.rows
    )


def _shown(group: ledger.FlagGroup, views: Mapping[str, FileView]) -> FlagView:
    """A group of flags, each with its line before and after."""
    flags = []
    for flag in group.flags:
        view = views.get(flag.file)
        before, after = (view.left, view.right) if view is not None else ((), ())
        place = flag.entry.output_line
        while 0 < place < len(after) and after[place - 1].lstrip().startswith("#"):
            place += 1  # what announces the flag
        new = _line(after, place) if flag.entry.output_line else ""
        flags.append(FlagLine(flag.file, flag.entry, _line(before, flag.entry.line), new))
    return FlagView(group.code, group.topic, work_of(group.code), tuple(flags))


def _line(lines: Sequence[str], number: int) -> str:
    return lines[number - 1].strip()[:200] if 0 < number <= len(lines) else ""


def commands(
    record: Record, verification: Verification | None, output_root: Path
) -> tuple[str, ...]:
    """The command lines that give this result again."""
    out = quote(str(output_root))
    target = "" if record.target == "portable" else f" --target {record.target}"
    found = [f"torch2ms convert {quote(record.source_root)} -o {out}{target}"]
    for model in verification.models if verification else ():
        found.append(f"torch2ms verify {out}{_asked(model)}")
    if verification is None:
        found.append(f"torch2ms verify {out}")
    return (*dict.fromkeys(found), f"torch2ms report {out} -o report.html")


def _asked(model: ModelResult) -> str:
    """The options that verify this model as it was verified."""
    inputs = "".join(f" --input {quote(spec)}" for spec in model.inputs)
    build = f" --build {quote(model.build)}" if model.build else ""
    options = "".join(f" {quote(option)}" for option in model.options)
    return f"{build}{inputs}{options}"
