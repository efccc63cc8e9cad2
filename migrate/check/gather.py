"""In: files and folders. Out: every finding that converting them would give; nothing is written."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate.check.findings import FAILED, Finding, applied, comments
from migrate.records.outcomes import Outcome, Problem
from migrate.records.result import Entry
from migrate.workspace import choices, project
from migrate.workspace.assembly import Conversion
from migrate.workspace.tree import Failure


@dataclass(frozen=True)
class Gathered:
    """Findings by place, the files that were looked at, and whether the program itself failed."""

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    status: int = 0


def gather(paths: Sequence[Path], request: project.Request) -> Gathered:
    """Plan the conversion of each path; a file by itself, a folder as a whole.

    ``request`` says how; its source and output are not used. Raises Problem for a path that is
    missing or unreadable.
    """
    findings: list[Finding] = []
    files: list[str] = []
    status = 0
    for path in dict.fromkeys(paths):
        nowhere = path.resolve().parent / f".{path.name}.checked"  # never made
        try:
            chosen = choices.of(path)
            here = replace(request, source=path, output=nowhere, choices=chosen)
            conversion = project.convert(here)
        except Problem as problem:
            if len(paths) == 1 or not path.exists():
                raise
            findings.append(_failed(path, path.name, problem))
            status = max(status, problem.status)
            continue
        findings += _findings(conversion, path)
        files += [_shown(path, file.source) for file in conversion.record.files if file.source]
        status = max(status, conversion.status if conversion.failures else 0)
    ordered = sorted(
        dict.fromkeys(findings), key=lambda f: (f.file, f.cell, f.line, f.column, f.code)
    )
    return Gathered(tuple(ordered), tuple(dict.fromkeys(files)), status)


def _shown(source: Path, file: str) -> str:
    """From the working folder, as a user and a code host name it."""
    return Path(os.path.relpath(source / file if source.is_dir() else source)).as_posix()


def _findings(conversion: Conversion, source: Path) -> Iterator[Finding]:
    for failure in conversion.failures:
        yield _failed(source, failure.where, failure)
    flagged: dict[str, list[Entry]] = defaultdict(list)
    for file in conversion.record.files:
        flagged[file.source] += [e for e in file.entries if e.outcome is Outcome.FLAGGED]
    for path, entries in flagged.items():
        data = _text(conversion, path)
        found = comments(data) if b"torch2ms:" in data else ()
        if not entries and not found:
            continue
        lines = data.decode("utf-8", "replace").splitlines()
        shown = _shown(source, path)
        plain = [_finding(entry, shown, lines) for entry in entries]
        for finding in applied(plain, found, shown):
            yield _in_cell(finding, conversion, path)


def _failed(source: Path, where: str, failure: Failure | Problem) -> Finding:
    return Finding(
        file=_shown(source, where), code=FAILED, reason=f"{failure.what}: {failure.why}",
        next_step=failure.next_step,
    )  # fmt: skip


def _text(conversion: Conversion, path: str) -> bytes:
    """The text that lines of the record count in: of a notebook, its cells as one module."""
    if path in conversion.notebooks:
        return conversion.notebooks[path].text.encode("utf-8")
    return conversion.originals.get(path, b"")


def _finding(entry: Entry, file: str, lines: Sequence[str]) -> Finding:
    text = lines[entry.line - 1].strip() if 0 < entry.line <= len(lines) else ""
    return Finding(
        file=file, line=entry.line, column=entry.column, code=entry.code, name=entry.name,
        reason=entry.reason, next_step=entry.next_step, text=text,
    )  # fmt: skip


def _in_cell(finding: Finding, conversion: Conversion, path: str) -> Finding:
    if path not in conversion.notebooks:
        return finding
    cell, line = conversion.notebooks[path].place(finding.line)
    return finding.model_copy(update={"cell": cell, "line": line})
