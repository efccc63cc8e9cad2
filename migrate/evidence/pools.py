"""In: jobs. Out: answers of the worker processes of both frameworks, whatever happens to them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from migrate.evidence import workers
from migrate.evidence.workers import MindSporeRun, TorchJob

SECONDS_A_JOB = 60.0
SECONDS_A_TORCH_RUN = 3.0
NOT_TRIED = {"error": "not tried: other runs of this row hung or crashed"}
MOST_LOST = 2  # crashes and hangs of one row in one mode; the rest of them is not tried
JOBS_A_WORKER = 120  # what MindSpore compiled stays in memory until its process ends


@dataclass(frozen=True)
class Pools:
    """The worker processes of both frameworks; each job of ``fresh`` has a process of its own."""

    torch: ProcessPool
    mindspore: ProcessPool
    fresh: ProcessPool

    def __enter__(self) -> Pools:
        # both load at once, while the first rows are converted
        self.torch.schedule(workers.warm_torch)
        self.mindspore.schedule(workers.warm_mindspore)
        return self

    def __exit__(self, *error: object) -> None:
        for pool in (self.torch, self.mindspore, self.fresh):
            pool.stop()
            pool.join()


def open_pools(jobs: int) -> Pools:
    """``jobs`` MindSpore workers and one of torch, which has much less to do."""
    context = get_context("spawn")
    return Pools(
        ProcessPool(1, initializer=workers.start_torch, context=context),
        ProcessPool(jobs, JOBS_A_WORKER, workers.start_mindspore, context=context),
        ProcessPool(1, 1, workers.start_mindspore, context=context),
    )


def ask_torch(pools: Pools, job: TorchJob) -> Any:
    """A future of what torch finds."""
    runs = len(job.probes) * 2 + len(job.variants) * len(job.varied)
    limit = SECONDS_A_JOB + SECONDS_A_TORCH_RUN * runs
    return pools.torch.schedule(workers.torch_job, args=(job,), timeout=limit)


def result(future: Any) -> tuple[Any, str]:
    """(what a worker answered, "") or (None, why it did not)."""
    if future is None:
        return None, ""
    try:
        return future.result(), ""
    except FutureTimeout:
        return None, "no answer in time"
    except ProcessExpired as error:
        return None, f"the worker process died with exit code {error.exitcode}"


@dataclass(frozen=True)
class Asked:
    """Runs on their way through a MindSpore worker, and where their answers arrive."""

    runs: Sequence[MindSporeRun]
    journal: Path
    future: Any


def ask_mindspore(pool: ProcessPool, runs: Sequence[MindSporeRun], journal: Path) -> Asked:
    """Start the runs of one row, one after the other in one worker."""
    if not runs:
        return Asked(runs, journal, None)
    # the worker ends a run that hangs by itself; this limit is for a worker that cannot
    limit = SECONDS_A_JOB + sum(run.seconds for run in runs)
    future = pool.schedule(workers.mindspore_job, args=(list(runs), journal), timeout=limit)
    return Asked(runs, journal, future)


def collect(pool: ProcessPool, asked: Asked) -> list[dict[str, Any]]:
    """The answers to all runs, in order; runs behind a crash or a hang are asked anew."""
    runs = list(asked.runs)
    answers: dict[int, dict[str, Any]] = {}
    lost: dict[tuple[str, bool], int] = {}
    waiting = list(range(len(runs)))
    attempt = asked
    for number in range(1, 2 * len(runs) + 1):
        _, why = result(attempt.future)
        arrived = workers.read_journal(attempt.journal)
        answers.update(zip(waiting, arrived, strict=False))
        waiting = waiting[len(arrived) :]
        if not waiting:
            break
        first = waiting[0]
        if len(workers.groups([runs[i] for i in waiting])[0]) > 1:
            # several were compiled as one: each for itself says which of them it was
            runs = [replace(run, alone=run.mode == "graph") for run in runs]
        else:
            answers[first] = {"error": _loss(attempt, runs[first], why)}
            group = _group(runs[first])
            lost[group] = lost.get(group, 0) + 1
            given_up = [i for i in waiting if lost[group] == MOST_LOST and _group(runs[i]) == group]
            answers.update(dict.fromkeys(set(given_up) - {first}, NOT_TRIED))
            waiting = [i for i in waiting if i not in answers]
        again = attempt.journal.with_suffix(f".{number}")
        attempt = ask_mindspore(pool, [runs[i] for i in waiting], again)
    return [answers[i] for i in range(len(runs))]


def _group(run: MindSporeRun) -> tuple[str, bool]:
    return run.mode, bool(run.kind)


def _loss(attempt: Asked, run: MindSporeRun, why: str) -> str:
    trace = workers.hang_file(attempt.journal)
    if trace.is_file() and trace.stat().st_size:
        return f"no answer within {run.seconds:.0f} s"
    return why or "the worker process gave no answer"
