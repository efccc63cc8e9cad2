"""In: a conversion. Out: its findings, totals and differences as lines of text."""

from __future__ import annotations

import difflib
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from migrate.records.outcomes import GRAPH, Outcome
from migrate.records.result import (
    CHECKED,
    RECORDED,
    SAID,
    Entry,
    FileResult,
    Record,
    summed,
)
from migrate.workspace.conversion import Conversion
from migrate.workspace.outputs import Output

_ALL = 30  # flags that are listed one by one
_FIRST = 3  # places a code that are listed when there are more


def place(conversion: Conversion, source: Path, file: FileResult, entry: Entry) -> str:
    """Where an entry stands, as a terminal links it; in a notebook by cell."""
    path = os.path.join(source, file.source) if source.is_dir() else str(source)
    notebook = conversion.notebooks.get(file.source)
    cell, line = notebook.place(entry.line) if notebook else (0, entry.line)
    if cell:
        return f"{path}:cell {cell}:{line}:{entry.column}"
    return f"{path}:{entry.line}:{entry.column}"


def failures(conversion: Conversion, source: Path) -> Iterator[str]:
    """One line for each file that has no output."""
    for item in conversion.failures:
        where = os.path.join(source, item.where) if source.is_dir() else str(source)
        yield f"{where}: {item.what}: {item.why}; {item.next_step}"


def flagged(conversion: Conversion, source: Path) -> Iterator[str]:
    """Every flag, or the first places of each code when there are many."""
    found: dict[str, list[str]] = {}
    for file in conversion.record.own_files:
        for entry in file.entries:
            if entry.outcome is Outcome.FLAGGED:
                step = f"; {entry.next_step}" if entry.next_step else ""
                where = place(conversion, source, file, entry)
                text = f"{where} {entry.code} {entry.name}: {entry.reason}"
                found.setdefault(entry.code, []).append(text + step)
    total = sum(map(len, found.values()))
    for code in sorted(found, key=lambda key: (-len(found[key]), key)):
        lines = found[code]
        if total <= _ALL:
            yield from lines
            continue
        yield from lines[:_FIRST]
        if len(lines) > _FIRST:
            yield f"  ... {code}: {len(lines) - _FIRST} more places"


def totals(conversion: Conversion) -> Iterator[str]:
    """What was counted: files, and references by outcome."""
    record = conversion.record
    files = record.own_files
    counts = {
        status: sum(1 for file in files if file.status == status and file.source)
        for status in ("converted", "copied", "skipped", "failed")
    }
    lines = sum(file.lines for file in files if file.status == "converted")
    parts = [f"{counts['converted']} converted ({lines:,} lines)"]
    parts += [f"{counts[name]} {name}" for name in ("copied", "skipped", "failed") if counts[name]]
    yield "Files:      " + ", ".join(parts)
    ledger = summed(files)
    yield (
        f"References: {ledger.total:,} = {ledger.converted:,} converted + {ledger.helper:,} by "
        f"helpers + {ledger.kept:,} kept + {ledger.stopping:,} flagged + "
        + (f"{ledger.graph:,} for graph mode + " if ledger.graph else "")
        + f"{ledger.out_of_scope:,} out of scope"
    )
    if ledger.others or ledger.open:
        yield (
            f"Names:      {ledger.places:,} that torch or its objects have, {ledger.others:,} of "
            f"them of other objects, {ledger.open:,} of unknown ones"
        )
    codes = Counter(
        entry.code for file in files for entry in file.entries if entry.code
    ).most_common()
    graph = [f"{code} {count}" for code, count in codes if code.startswith(GRAPH)]
    if len(graph) < len(codes):
        some = (f"{code} {count}" for code, count in codes if not code.startswith(GRAPH))
        yield "Flagged:    " + ", ".join(some)
    if graph:
        yield "Graph mode: " + ", ".join(graph) + " (right in PyNative, not compiled)"
    if not counts["converted"] and not conversion.failures:
        yield "            nothing in it needs to change"
    notes = {entry.note for file in files for entry in file.entries if entry.note}
    if notes:
        yield f"Notes:      {len(notes)} API differences that change no number (see the report)"
    assumed = [e.assumption for file in files for e in file.entries if e.assumption]
    checked = sum(text.startswith(CHECKED) for text in assumed)
    if checked:
        yield f"Checked:    {checked} places stop where something is a Tensor (see the report)"
    assumed = [text for text in assumed if not text.startswith(CHECKED)]
    said = sum(SAID in text for text in assumed)
    if said:
        yield f"Chosen:     {said} places are what was decided for them (torch2ms fix)"
    assumed = [text for text in assumed if SAID not in text]
    shown = sum(RECORDED in text for text in assumed)
    if shown:
        yield f"Assumed:    {shown} receivers are what they were in the run (see the report)"
    if len(assumed) > shown:
        rest = len(assumed) - shown
        yield f"Assumed:    {rest} receivers are Tensors as nothing else fits (see the report)"
    if conversion.unused:
        few = ", ".join(f"{c.file}: {c.statement}"[:60] for c in conversion.unused[:_FIRST])
        yield f"Choices:    {len(conversion.unused)} meet no flag any more: {few}"
    yield from along(record)


def along(record: Record) -> Iterator[str]:
    """Which installed packages were converted along, what of them, and under which licence."""
    for package in record.along:
        files = [file for file in record.files_of(package.name) if file.status != "copied"]
        ledger = summed(files)
        yield (
            f"Along:      {package.name} {package.version} ({package.licence}) in "
            f"{package.output}: {len(files)} files ({sum(f.lines for f in files):,} lines), "
            f"{ledger.total:,} references, {ledger.flagged:,} flagged (see the report)"
        )


def skipped(record: Record) -> Iterator[str]:
    """What was left out, by reason."""
    reasons: dict[str, list[str]] = {}
    for file in record.files:
        if file.status == "skipped":
            reasons.setdefault(file.reason, []).append(file.source)
    for reason, paths in sorted(reasons.items()):
        more = f", ... ({len(paths)})" if len(paths) > _FIRST else ""
        yield f"Skipped:    {reason}: {', '.join(paths[:_FIRST])}{more}"


def next_commands(conversion: Conversion, out: Path) -> Iterator[str]:
    """What a user does next."""
    shown = shlex.quote(str(out))
    if any(file.cells for file in conversion.record.files):
        yield f"Next:       torch2ms verify {shown}"
        yield f"            torch2ms report {shown} -o report.html"
    else:
        yield f"Next:       torch2ms report {shown} -o report.html"


def differences(conversion: Conversion) -> Iterator[str]:
    """A unified diff of every file that changes, and of every file that is added."""
    sources = {file.output: file.source for file in conversion.record.files if file.output}
    for output in conversion.outputs:
        if output.content is not None:
            yield from _difference(conversion, output, sources.get(output.path, ""))


def _difference(conversion: Conversion, output: Output, source: str) -> Iterator[str]:
    before = conversion.originals.get(source, b"").decode("utf-8", "replace")
    after = (output.content or b"").decode("utf-8", "replace")
    old = f"a/{source}" if source else "/dev/null"
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), old, f"b/{output.path}"
    )
    for line in lines:
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
