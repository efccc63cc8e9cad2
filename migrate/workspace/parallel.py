"""In: a function and the paths to call it on. Out: path -> result, forked where it pays."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from pebble import ProcessExpired, concurrent

Result = TypeVar("Result")
_SHARE = 200_000  # bytes of source that are worth a process of their own


class Died(str):
    """Why the process that worked on a path ended without a result."""


def each(
    function: Callable[[str], Result],
    sizes: Mapping[str, int],
    jobs: int,
    progress: Callable[[int, int], None],
) -> dict[str, Result | Died]:
    """Call ``function`` on every path. A process that dies costs one path, not the run.

    Args:
        function: raises nothing; its result can be pickled.
        sizes: path -> bytes, to give every process the same amount of work.
        jobs: processes at a time; 0: as many as there are processors, as far as it pays.
        progress: called with (paths done, paths in all).
    """
    total = len(sizes)
    if jobs == 0:
        jobs = min(os.cpu_count() or 1, 1 + sum(sizes.values()) // _SHARE)
    if jobs < 2 or total < 2 or "fork" not in multiprocessing.get_all_start_methods():
        done: dict[str, Result | Died] = {}
        for path in sizes:
            done[path] = function(path)
            progress(len(done), total)
        return done
    return _forked(function, _shares(sizes, jobs), jobs, lambda n: progress(n, total))


def _shares(sizes: Mapping[str, int], jobs: int) -> list[list[str]]:
    """The paths in shares of about equal size, one for each process: each finds its own indexes."""
    number = min(len(sizes), jobs)
    shares: list[list[str]] = [[] for _ in range(number)]
    loads = [0] * number
    for path in sorted(sizes, key=lambda item: (-sizes[item], item)):
        least = loads.index(min(loads))
        shares[least].append(path)
        loads[least] += sizes[path] + 1
    return shares


def _forked(
    function: Callable[[str], Result],
    shares: list[list[str]],
    jobs: int,
    progress: Callable[[int], None],
) -> dict[str, Result | Died]:
    # A forked process has the program in memory already: only paths and results travel.
    fork = multiprocessing.get_context("fork")
    run = concurrent.process(mp_context=fork)(lambda share: [function(path) for path in share])
    done: dict[str, Result | Died] = {}

    def take(share: list[str]) -> dict[str, Result | Died]:
        try:
            return dict(zip(share, run(share).result(), strict=True))
        except ProcessExpired as error:
            if len(share) > 1:
                return {path: took for one in share for path, took in take([one]).items()}
            return {share[0]: Died(f"its process ended with exit code {error.exitcode}")}

    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(take, share) for share in shares]):
            done.update(future.result())
            progress(len(done))
    return done
