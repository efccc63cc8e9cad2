"""In: the arguments of ``torch2ms convert``. Out: files, the record, findings, an exit code."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.cli import findings
from migrate.cli.terminal import Progress, is_coloured, need, painted_change, progress, say
from migrate.workspace import cache, merge
from migrate.workspace.cache import Kept
from migrate.workspace.conversion import Conversion
from migrate.workspace.request import Request

if TYPE_CHECKING:
    from migrate.analysis.types.recorded import Recorded


@dataclass(frozen=True)
class Options:
    """What concerns the command and not the conversion; ``trace`` are runs of the torch code."""

    diff: bool = False
    strict: bool = False
    force: bool = False
    trace: tuple[str, ...] = ()
    input: tuple[str, ...] = ()
    torch_python: Path | None = None
    cache: bool = True


def run(request: Request, options: Options) -> int:
    """Convert, write, say what happened. Gives the exit code; raises Problem (nothing written)."""
    if options.trace:
        request = replace(request, recorded=_recorded(request.source, options))
    with progress("converting") as shown:
        conversion = _converted(request, options, shown)
    stream = sys.stderr if options.diff else sys.stdout
    writes = not options.diff and not (options.strict and conversion.status)
    placed = merge.placed(conversion, request.source, options.force) if writes else None
    if placed and options.strict and placed.conversion.status:
        say(stream, merge.said(placed.changes, conversion.root))
        writes = False
    say(stream, findings.failures(conversion, request.source))
    say(stream, findings.flagged(conversion, request.source))
    if options.diff:
        changes = findings.differences(conversion)
        paint = is_coloured(sys.stdout)
        sys.stdout.writelines(map(painted_change, changes) if paint else changes)
    if placed and writes:
        placed.write()
    say(stream, findings.totals(conversion))
    say(stream, findings.skipped(conversion.record))
    if placed and writes:
        say(stream, merge.said(placed.changes, conversion.root))
        say(stream, findings.next_commands(conversion, request.output))
    elif not options.diff:
        say(stream, [f"Nothing is written to {request.output}: --strict, and not all is clean"])
    return placed.conversion.status if placed else conversion.status


def _converted(request: Request, options: Options, shown: Progress) -> Conversion:
    """Convert, or take what an earlier run gave for the same files and options."""
    made: list[Conversion] = []

    def make() -> Kept:
        from migrate.workspace import project

        made.append(project.convert(request, shown))
        return cache.dumped(made[0])

    kept = cache.opened(options.cache)
    if kept is None:
        make()
        return made[0]
    parts = kept.got("convert", request, (), make)
    return made[0] if made else cache.loaded(parts, request)


def _recorded(source: Path, options: Options) -> Recorded:
    need("numpy")
    from migrate.analysis.types.recorded import Recorded
    from migrate.parity.tracing import Runs, traced

    if not source.exists():
        return Recorded()  # convert says what is wrong with it
    return traced(source, Runs(options.trace, options.input, options.torch_python))
