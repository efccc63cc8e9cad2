"""In: the arguments of ``torch2ms check``. Out: findings on standard output, an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate.check import baseline
from migrate.check.findings import ANY, NONE, fails
from migrate.check.gather import Gathered, gather
from migrate.check.render import render
from migrate.cli import own
from migrate.cli.terminal import say
from migrate.records.outcomes import Problem
from migrate.report.ledger import TOPICS
from migrate.workspace import cache, settings
from migrate.workspace.outputs import write_atomically
from migrate.workspace.request import Request


@dataclass(frozen=True)
class Options:
    """``fail_on``: codes, topics, "any" or "none"; ``update``: write the baseline anew."""

    fail_on: tuple[str, ...] = ()
    baseline: Path | None = None
    update: bool = False
    format: str = "text"
    exclude: tuple[str, ...] = ()
    mappings: tuple[Path, ...] = ()
    jobs: int = 0
    cache: bool = True


def run(paths: Sequence[Path], options: Options) -> int:
    """Print the findings; 1: one of them fails, 2: a file cannot be read. Raises Problem."""
    set_ = settings.nearest(Path.cwd()).check
    fail_on = _known(options.fail_on or set_.fail_on or (ANY,))
    file = options.baseline or set_.baseline
    if options.update and file is None:
        raise Problem("--update-baseline", "no file", "it says nothing of where the baseline is",
                      "give --baseline FILE as well")  # fmt: skip
    brought = own.given(paths[0], options.exclude, options.mappings)
    request = Request(
        Path(), Path(), exclude=brought.exclude, jobs=options.jobs, mappings=brought.mappings,
        train_style=brought.train_style,
    )  # fmt: skip
    found = gather(paths, request, cache.opened(options.cache))
    gone = 0
    if file is not None:
        found, gone = _compared(found, file, options.update)
    text = render(found.findings, gone, fail_on, options.format)
    if options.format == "text":
        say(sys.stdout, text.splitlines())
    else:
        sys.stdout.write(text)
    failing = any(fails(finding, fail_on) for finding in found.findings)
    return max(found.status, int(failing))


def _known(fail_on: Sequence[str]) -> tuple[str, ...]:
    """Raises Problem for what is neither a code nor one of the words."""
    for text in fail_on:
        letters = text.rstrip("0123456789")
        if text not in (ANY, NONE) and letters not in TOPICS:
            raise Problem(
                "--fail-on", f"{text!r} is not known", "it is no code, and no topic of codes",
                f"give a code (API104), any, none, or one of {', '.join(TOPICS)}",
            )  # fmt: skip
    return tuple(fail_on)


def _compared(found: Gathered, file: Path, update: bool) -> tuple[Gathered, int]:
    """The findings against the baseline; with ``update`` that is written first."""
    folder = file.parent
    before = baseline.read(file) if file.exists() or not update else baseline.Baseline()
    concerned, others = baseline.seen(before, found.files, folder)
    if update:
        text = baseline.text(found.findings, others, folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, lambda path: path.write_text(text, encoding="utf-8"))
        concerned, _ = baseline.seen(baseline.read(file), found.files, folder)
    matched = baseline.match(found.findings, concerned, folder)
    return replace(found, findings=matched.findings), matched.gone
