"""In: models to verify and the address of a dask cluster. Out: their results, climbed there.

Every process of the cluster keeps a pair of workers for each of its threads. It reads the same
files at the same paths, and keeps finished rungs in the same journal: a model whose machine is
lost goes on elsewhere, from its last rung.
"""

from __future__ import annotations

import hashlib
import os
import queue
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, get_worker

from migrate import __version__
from migrate.parity.climb import Progress
from migrate.parity.ladder import Work
from migrate.parity.recorded import Target
from migrate.parity.request import VerifyRequest
from migrate.parity.session import SCRATCH, Sides, open_sides
from migrate.records.outcomes import Problem
from migrate.records.result import ModelResult

LOCAL = "local"
TOPIC = "torch2ms"
RETRIES = 3
CONNECT = 20.0  # seconds


class Pairs(WorkerPlugin):  # type: ignore[misc]  # dask has no types
    """Gives a process of the cluster its pairs of workers, and takes them away at the end."""

    name = TOPIC

    def __init__(self, request: VerifyRequest) -> None:
        self.request = request

    def setup(self, worker: Any) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}_"))
        count = worker.state.nthreads
        self.sides = [open_sides(self.request, self.folder, number) for number in range(count)]
        self.free: queue.Queue[Sides] = queue.Queue()
        for sides in self.sides:
            self.free.put(sides)

    def teardown(self, worker: Any) -> None:
        for sides in self.sides:
            sides.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def climb_there(target: Target, work: Work) -> ModelResult:
    """Runs on the cluster: one model with a pair of workers of the process it has come to."""
    worker = get_worker()
    free = worker.plugins[TOPIC].free
    sides = free.get()
    try:
        progress = lambda line: worker.log_event(TOPIC, line)  # noqa: E731
        return work.climb(target, sides, progress)
    finally:
        free.put(sides)


@dataclass
class There:
    """A Bench of the processes of a cluster."""

    client: Any
    work: Work
    progress: Progress
    executor: Any = field(init=False)

    def __post_init__(self) -> None:
        self.client.subscribe_topic(TOPIC, lambda event: self.progress(event[1]))
        self.client.register_plugin(Pairs(self.work.request))
        self.executor = self.client.get_executor(pure=False, retries=RETRIES)

    def submit(self, target: Target) -> Future[ModelResult]:
        found: Future[ModelResult] = Future()
        there = self.executor.submit(climb_there, target, self.work)
        there.add_done_callback(lambda done: _pass_on(done, found, target))
        return found

    def stop(self) -> None:
        self.client.unregister_worker_plugin(TOPIC)  # ends the pairs, and so what they climb
        self.executor.shutdown(wait=False)

    def close(self) -> None:
        self.executor.shutdown(wait=False)
        with suppress(ValueError):  # `stop` has done it
            self.client.unregister_worker_plugin(TOPIC)
        self.client.unsubscribe_topic(TOPIC)


def _pass_on(there: Future[ModelResult], here: Future[ModelResult], target: Target) -> None:
    """Return the result of the cluster; where the cluster lost the model again and again, that."""
    if there.cancelled():
        here.cancel()
        return
    error = there.exception()
    if error is None:
        here.set_result(there.result())
    elif isinstance(error, KilledWorker):
        why = f"{target.source}: {target.name}: every process of the cluster that took it died"
        here.set_result(target.failed(f"{why}. Next: verify it by itself, with --memory"))
    else:
        here.set_exception(error)


@contextmanager
def open_cluster(request: VerifyRequest) -> Iterator[tuple[Any, VerifyRequest]]:
    """A client of ``request.cluster``, and the request as its machines need it.

    Raises Problem where there is no cluster, or one that sees other files or another version.
    """
    kind, _, count = request.cluster.partition(":")
    if kind == LOCAL:
        processes = int(count) if count.isdecimal() and int(count) else os.cpu_count() or 1
        with (
            tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}_") as folder,
            LocalCluster(
                n_workers=processes, threads_per_worker=1, memory_limit=0,
                dashboard_address=None, local_directory=folder,
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            yield client, _checked(client, request)
        return
    try:
        client = Client(request.cluster, timeout=CONNECT)
    except (OSError, ValueError) as error:
        raise Problem(
            "--cluster", f"no cluster at {request.cluster}", str(error).split("\n")[0],
            "start one (dask scheduler, dask worker), or use local:2",
        ) from error  # fmt: skip
    with client:
        yield client, _checked(client, request)


def _checked(client: Any, request: VerifyRequest) -> VerifyRequest:
    """Return the request with as many jobs as one machine gets. Raises Problem."""
    told = client.run(sight, request.record)
    if not told:
        raise Problem("--cluster", "it has no worker", request.cluster, "start dask worker")
    own = sight(request.record)
    for address, seen in sorted(told.items()):
        if seen != own:
            what = "has another version of torch2ms" if seen[0] != own[0] else "sees other files"
            raise Problem(
                address, what, f"{seen} there, {own} here",
                "install the same version, and share the folder under the same path",
            )  # fmt: skip
    threads: Counter[str] = Counter()
    for worker in client.scheduler_info(n_workers=-1)["workers"].values():
        threads[worker["host"]] += worker["nthreads"]
    return replace(request, jobs=max(threads.values()))


def sight(record: Path) -> tuple[str, str]:
    """Return the version of this tool, and a checksum of the record as it is seen from here."""
    try:
        return __version__, hashlib.sha256(record.read_bytes()).hexdigest()[:12]
    except OSError as error:
        return __version__, type(error).__name__
