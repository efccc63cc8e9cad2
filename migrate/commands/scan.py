"""In: the arguments of ``torch2ms scan``. Out: the assessment on standard output, an exit code."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from migrate.commands.progress import progress
from migrate.commands.table import load


@dataclass(frozen=True)
class Options:
    """How to assess, and what to show."""

    target: Literal["portable", "mint"] = "portable"
    format: str = "text"
    exclude: tuple[str, ...] = ()
    mappings: tuple[Path, ...] = ()
    jobs: int = 0
    every: bool = False


def run(source: Path, options: Options) -> int:
    """Print the assessment; the exit code is the one that convert would give. Raises Problem."""
    from migrate.scan import render
    from migrate.scan.assess import assess

    rows = load(options.mappings)
    with progress("scanning") as shown:
        found = assess(
            source, rows, options.target, options.exclude, options.jobs, options.mappings, shown
        )
    sys.stdout.write(render(found.assessment, options.format, options.every))
    return found.status
