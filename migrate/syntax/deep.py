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
LEAST_BYTES = 32 * 1024 * 1024  # room for 6,250 frames
FRAMES = 100_000


def deeply(function: Callable[[], Result]) -> Result:
    """Run ``function`` where chains of calls across files do not exhaust the stack.

    Where memory is too short for the largest stack, a smaller one with fewer frames is taken.

    Raises whatever the function raises; RuntimeError where there is no memory for any.
    """
    found: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:  # handed on to the caller below
            failed.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size()
    try:
        _started(run, limit).join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if failed:
        raise failed[0]
    return found[0]


def _started(run: Callable[[], None], limit: int) -> threading.Thread:
    stack = STACK_BYTES
    while True:
        threading.stack_size(stack)
        sys.setrecursionlimit(max(limit, FRAMES * stack // STACK_BYTES))
        thread = threading.Thread(target=run, name="torch2ms-deep")
        try:
            thread.start()
        except RuntimeError:  # "can't start new thread": no memory for its stack
            if stack <= LEAST_BYTES:
                raise
            stack //= 2
        else:
            return thread


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
