"""Say on the terminal how far a command is, or that it lacks a package."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from migrate.records.outcomes import Problem

_WHY = {"verify": "this command runs the frameworks", "cluster": "--cluster runs through dask"}


def need(*packages: str, extra: str = "verify") -> None:
    """Look whether packages of an extra are there, without importing them.

    Raises:
        Problem: one is missing; convert and report do without them.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise Problem(
            "torch2ms", f"{' and '.join(missing)} cannot be imported",
            _WHY[extra], f'pip install "torch2mindspore[{extra}]"',
        )  # fmt: skip


Progress = Callable[[int, int], None]
_SLOW = 40  # files from which progress is worth a line


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """A bar on a terminal, a line now and then elsewhere; nothing for a few files."""
    if not sys.stderr.isatty():
        yield lambda done, total: _line(doing, done, total)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line(doing: str, done: int, total: int) -> None:
    step = max(1, total // 10)
    if total >= _SLOW and (done // step != (done - 1) // step or done == total):
        print(f"{doing}: {done} of {total} files", file=sys.stderr)
