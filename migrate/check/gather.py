"""In: files and folders. Out: every finding that converting them would give; nothing is written."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate.check.findings import FAILED, Finding, applied, comments
from migrate.records.outcomes import Outcome, Problem
from migrate.records.result import Entry
from migrate.workspace import choices_file
from migrate.workspace.cache import Cache, Kept
from migrate.workspace.conversion import Conversion
from migrate.workspace.request import Request
from migrate.workspace.tree import Failure


@dataclass(frozen=True)
class Gathered:
    """Findings by place, the files that were looked at, and whether the program itself failed."""

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    status: int = 0


def gather(paths: Sequence[Path], request: Request, kept: Cache | None = None) -> Gathered:
    """Plan the conversion of each path; a file by itself, a folder as a whole.

    ``request`` says how; its source and output are not used. ``kept``: where earlier results lie.
    Raises Problem for a path that is missing or unreadable.
    """
    findings: list[Finding] = []
    files: list[str] = []
    status = 0
    for path in dict.fromkeys(paths):
        nowhere = path.resolve().parent / f".{path.name}.checked"  # never made
        try:
            chosen = choices_file.of(path)
            here = replace(request, source=path, output=nowhere, choices=chosen)
            found = _gathered(here, kept)
        except Problem as problem:
            if len(paths) == 1 or not path.exists():
                raise
            findings.append(_failed(path, path.name, problem))
            status = max(status, problem.status)
            continue
        findings += found.findings
        files += found.files
        status = max(status, found.status)
    ordered = sorted(
        dict.fromkeys(findings), key=lambda f: (f.file, f.cell, f.line, f.column, f.code)
    )
    return Gathered(tuple(ordered), tuple(dict.fromkeys(files)), status)


def _gathered(request: Request, kept: Cache | None) -> Gathered:
    """Return the findings of one path, those of an earlier run where nothing has changed."""

    def make() -> Kept:
        from migrate.workspace import project

        made = project.convert(request)
        found = Gathered(
            tuple(_findings(made, request.source)),
            tuple(_shown(request.source, file.source) for file in made.record.files if file.source),
            made.status if made.failures else 0,
        )
        rows = [finding.model_dump(mode="json") for finding in found.findings]
        whole = {"findings": rows, "files": found.files, "status": found.status}
        return Kept({"findings.json": json.dumps(whole).encode()}, made.looked, made.status != 3)

    parts = kept.got("check", request, (), make) if kept is not None else make().parts
    whole = json.loads(parts["findings.json"])
    findings = tuple(Finding.model_validate(row) for row in whole["findings"])
    return Gathered(findings, tuple(whole["files"]), whole["status"])


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
