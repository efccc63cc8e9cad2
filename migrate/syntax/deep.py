"""In: a function that recurses deeply, or makes many objects. Out: its result, with room."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")
STACK_BYTES = 512 * 1024 * 1024
FRAMES = 100_000


def deeply(function: Callable[[], Result]) -> Result:
    """Run ``function`` where chains of calls across files do not exhaust the stack.

    Raises whatever the function raises.
    """
    found: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:  # handed on to the caller below
            failed.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(max(limit, FRAMES))
    try:
        thread = threading.Thread(target=run, name="torch2ms-deep")
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if failed:
        raise failed[0]
    return found[0]


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the search for cycles: syntax trees have none, and it costs a third of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            # what is alive now counts as old, so that the next search does not begin with it
            gc.freeze()
            gc.unfreeze()
            gc.enable()
