"""In: what is worked on. Out: a function that shows how far it is, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
