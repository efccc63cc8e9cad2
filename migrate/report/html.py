"""In: a record, a verification and both trees. Out: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from migrate.records.result import FileResult, ModelResult, Record, Verification
from migrate.report import headline, ledger
from migrate.report.diff import Block, blocks, texts
from migrate.report.models import model_views, size

# Bytes, so that the page stays below 2 MB: what models and diff may take together, and the diff.
ROOM = 1_750_000
DIFF_BUDGET = 900_000
ROW_COST = 140
ALONG = "Converted along from the installed {}: what is used of it, so no file compares with it."
LEFT_OUT = "The diff is left out to keep this page small; compare the files with any diff tool."


@dataclass(frozen=True)
class FileView:
    """A file and its diff; ``message`` stands in place of what cannot be shown."""

    number: int
    file: FileResult
    blocks: tuple[Block, ...]
    message: str
    edited: int
    unchanged: int

    @property
    def complete(self) -> bool:
        """Whether every line is on the page, so that a link to it leads somewhere."""
        return 0 < self.edited + self.unchanged == sum(len(block.rows) for block in self.blocks)


def page(
    record: Record, verification: Verification | None, source_root: Path, output_root: Path
) -> str:
    """The page: no network, no file beside it. Never raises for missing or odd files."""
    seen = ledger.coverage(record, verification)
    models = tuple(model_views(record, verification, source_root, output_root))
    room = min(DIFF_BUDGET, ROOM - size(models))
    files = tuple(_file_views(record, source_root, output_root, room))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            record=record,
            verification=verification,
            headline=headline.headline(record, verification, seen),
            cards=headline.cards(record, verification, seen),
            seen=seen,
            columns=ledger.COLUMNS,
            by_file=ledger.by_file(record),
            by_api=ledger.by_api(record),
            complaints=ledger.complaints(record),
            groups=ledger.flag_groups(record),
            notes=ledger.notes(record),
            assumptions=ledger.assumptions(record),
            files=files,
            numbers={view.file.source: view.number for view in files if view.complete},
            aside=[f for f in record.files if f.status != "converted"],
            models=models,
            cautions=headline.cautions(record, verification),
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
) -> Iterator[FileView]:
    """The files with their diffs, as far as ``left`` bytes reach."""
    number = 0
    for file in record.files:
        if file.status != "converted":
            continue
        number += 1
        if left < DIFF_BUDGET // 20:
            # no room for even a small diff: do not spend time on computing it
            view = FileView(number, file, (), LEFT_OUT, 0, 0)
        else:
            view = _fit(_file_view(number, file, source_root, output_root), left)
        left -= _cost(view.blocks)
        yield view


def _file_view(number: int, file: FileResult, source_root: Path, output_root: Path) -> FileView:
    if file.package:
        return FileView(number, file, (), ALONG.format(file.package), 0, 0)
    found = texts(file, source_root, output_root)
    if found.problem:
        return FileView(number, file, (), found.problem, 0, 0)
    parts = blocks(found.before, found.after, file.entries, file.source.endswith(".py"))
    rows = [row for block in parts for row in block.rows]
    edited = sum(row.kind != "same" for row in rows)
    return FileView(number, file, parts, found.warning, edited, len(rows) - edited)


def _cost(parts: Sequence[Block]) -> int:
    return sum(
        ROW_COST + len(row.left_html) + len(row.right_html) + 250 * len(row.entries)
        for block in parts
        for row in block.rows
    )


def _fit(view: FileView, left: int) -> FileView:
    """Leave out unchanged lines, then the whole diff, rather than grow the page."""
    if _cost(view.blocks) <= left:
        return view
    kept = tuple(block for block in view.blocks if not block.folded)
    if _cost(kept) <= left:
        message = "Unchanged stretches are left out to keep this page small."
        return replace(view, blocks=kept, message=f"{view.message} {message}".strip())
    return replace(view, blocks=(), message=f"{view.message} {LEFT_OUT}".strip())


def commands(
    record: Record, verification: Verification | None, output_root: Path
) -> tuple[str, ...]:
    """The command lines that give this result again."""
    out = quote(str(output_root))
    target = "" if record.target == "portable" else f" --target {record.target}"
    found = [f"torch2ms convert {quote(record.source_root)} -o {out}{target} --force"]
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
