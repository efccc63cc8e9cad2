"""Answer ``torch2ms doctor``, ``explain`` and ``scan``: print what is known, give an exit code."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from migrate.cli.table import load
from migrate.cli.terminal import progress


def doctor() -> int:
    """Print the findings about this machine; 1 when one of them stands in the way of verify."""
    from migrate.workspace.doctor import diagnose

    found = diagnose()
    for finding in found:
        step = f"; {finding.next_step}" if finding.next_step else ""
        print(f"{finding.level:<8} {finding.name}: {finding.found}{step}")
    return 1 if any(finding.level == "problem" for finding in found) else 0


def explain(name: str, mappings: tuple[Path, ...] = ()) -> int:
    """Print everything known about a name or code. Raises Problem when it is unknown."""
    from migrate.explain import explain, explain_code, is_code

    rows = load(mappings)
    for line in explain_code(name, rows) if is_code(name) else explain(name, rows):
        print(line)
    return 0


@dataclass(frozen=True)
class Options:
    """How to assess, and what to show."""

    target: Literal["portable", "mint"] = "portable"
    format: str = "text"
    exclude: tuple[str, ...] = ()
    mappings: tuple[Path, ...] = ()
    jobs: int = 0
    every: bool = False
    cache: bool = True


def scan(source: Path, options: Options) -> int:
    """Print the assessment; the exit code is the one that convert would give. Raises Problem."""
    from migrate.report.scan import assessed, render
    from migrate.workspace import cache, choices_file
    from migrate.workspace.request import Request

    nowhere = source.resolve().parent / f".{source.name}.scanned"  # never made: nothing is written
    request = Request(
        source, nowhere, options.target, "", options.exclude, options.jobs, options.mappings,
        choices=choices_file.of(source),
    )  # fmt: skip
    with progress("scanning") as shown:
        kept = cache.opened(options.cache)
        found = assessed(request, lambda: load(options.mappings), kept, shown)
    sys.stdout.write(render(found.assessment, options.format, options.every))
    return found.status
