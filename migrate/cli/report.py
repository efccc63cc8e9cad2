"""In: the arguments of ``torch2ms report``. Out: the report, in a file or printed."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import ValidationError

from migrate.records.outcomes import Problem
from migrate.report.formats import Document
from migrate.workspace import record
from migrate.workspace.outputs import write_atomically

_ENDINGS = {".json": "json", ".md": "md", ".sarif": "sarif", ".xml": "junit"}


def run(out: Path, file: Path | None, format: str | None) -> int:
    """Write the report of the output at ``out``; gives the exit code. Raises Problem."""
    from migrate.report import render

    format = format or _ENDINGS.get(file.suffix if file else "", "html")
    if file is None and format == "html":
        raise Problem("torch2ms report", "no file", "a page is nothing to print",
                      "give -o FILE, or another --format")  # fmt: skip
    located = record.locate(out)
    verification = record.read_verification(located)
    source = Path(located.record.source_root)
    _give(render(located.record, verification, source, located.root, format), file)
    if verification is None and file is not None:
        print(f"NOT verified yet. Next: torch2ms verify {out}")
    return 0


def run_compare(old: Path, new: Path, file: Path | None, format: str | None) -> int:
    """Write what has changed from one output to another; 1: something got worse."""
    from migrate.report import changes, compare

    found = compare(_document(old), _document(new))
    format = format or _ENDINGS.get(file.suffix if file else "", "md")
    try:
        text = changes(found, format)
    except ValueError as error:
        raise Problem("--format", "not for --compare", str(error), "leave it out") from error
    _give(text, file)
    return int(found.worse)


def _document(path: Path) -> Document:
    """A report in JSON, or the record of an output with what verify found. Raises Problem."""
    if path.is_file() and path.suffix == ".json" and not path.name.endswith(record.NAME):
        try:
            return Document.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise Problem(str(path), "not a report", str(error).splitlines()[0],
                          "give what report --format json or convert wrote") from error  # fmt: skip
    located = record.locate(path)
    return Document(record=located.record, verification=record.read_verification(located))


def _give(text: str, file: Path | None) -> None:
    if file is None:
        sys.stdout.write(text)
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, lambda path: path.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise Problem(
            str(file), "cannot be written", error.strerror or str(error), "choose another FILE"
        ) from error
    print(f"{file} ({len(text) // 1024:,} KB)")
