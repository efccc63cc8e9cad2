"""In: models to verify and pairs of workers. Out: their results, as many side by side as pairs."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from migrate.parity.climb import climb
from migrate.parity.journal import Journal
from migrate.parity.request import VerifyRequest
from migrate.parity.session import Sides, Target
from migrate.result import ModelResult
from migrate.weights import Names

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Work:
    """What is the same for every model of a run."""

    request: VerifyRequest
    names: Names
    journal: Journal


class Bench(Protocol):
    """Where models are climbed."""

    def submit(self, target: Target) -> Future[ModelResult]:
        """Climb a model as soon as there is room."""

    def stop(self) -> None:
        """End at once what is climbed now; what waits is cancelled."""

    def close(self) -> None:
        """Release everything, after the last result or after `stop`."""


class Here:
    """Pairs of workers on this machine; they outlive it."""

    def __init__(self, work: Work, pool: Sequence[Sides], progress: Progress) -> None:
        self._work, self._pool, self._progress = work, pool, progress
        self._threads = ThreadPoolExecutor(len(pool))
        self._free: queue.Queue[Sides] = queue.Queue()
        for sides in pool:
            self._free.put(sides)

    def submit(self, target: Target) -> Future[ModelResult]:
        return self._threads.submit(self._climb, target)

    def _climb(self, target: Target) -> ModelResult:
        work, sides = self._work, self._free.get()
        try:
            return climb(target, work.request, work.names, sides, self._progress, work.journal)
        finally:
            self._free.put(sides)

    def stop(self) -> None:
        for sides in self._pool:
            sides.close()

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
