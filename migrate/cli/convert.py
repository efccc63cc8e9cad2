"""In: the arguments of ``torch2ms convert``. Out: files, the record, findings, an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from migrate.analysis.types.recorded import Recorded
from migrate.cli import findings
from migrate.cli.terminal import need, progress
from migrate.workspace import merge, project


@dataclass(frozen=True)
class Options:
    """What concerns the command and not the conversion; ``trace`` are runs of the torch code."""

    diff: bool = False
    strict: bool = False
    force: bool = False
    trace: tuple[str, ...] = ()
    input: tuple[str, ...] = ()
    torch_python: Path | None = None


def run(request: project.Request, options: Options) -> int:
    """Convert, write, say what happened. Gives the exit code; raises Problem (nothing written)."""
    if options.trace:
        request = replace(request, recorded=_recorded(request.source, options))
    with progress("converting") as shown:
        conversion = project.convert(request, shown)
    stream = sys.stderr if options.diff else sys.stdout
    writes = not options.diff and not (options.strict and conversion.status)
    placed = merge.placed(conversion, request.source, options.force) if writes else None
    if placed and options.strict and placed.conversion.status:
        _say(stream, merge.said(placed.changes, conversion.root))
        writes = False
    _say(stream, findings.failures(conversion, request.source))
    _say(stream, findings.flagged(conversion, request.source))
    if options.diff:
        sys.stdout.writelines(findings.differences(conversion))
    if placed and writes:
        placed.write()
    _say(stream, findings.totals(conversion))
    _say(stream, findings.skipped(conversion.record))
    if placed and writes:
        _say(stream, merge.said(placed.changes, conversion.root))
        _say(stream, findings.next_commands(conversion, request.output))
    elif not options.diff:
        _say(stream, [f"Nothing is written to {request.output}: --strict, and not all is clean"])
    return placed.conversion.status if placed else conversion.status


def _recorded(source: Path, options: Options) -> Recorded:
    need("numpy")
    from migrate.parity.tracing import Runs, traced

    if not source.exists():
        return Recorded()  # convert says what is wrong with it
    return traced(source, Runs(options.trace, options.input, options.torch_python))


def _say(stream: TextIO, lines: Iterable[str]) -> None:
    for line in lines:
        print(line, file=stream)
