"""Run jobs in worker processes, each framework in its own, whatever happens to them.

Nothing is imported here before a job arrives: the parent must load neither framework. Answers of
MindSpore go into a journal one by one, so a crash or a hang costs the run in which it happens.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble import ProcessExpired, ProcessPool

from migrate.evidence.variants import Variant
from migrate.parity.exchange import Array

if TYPE_CHECKING:
    from migrate.evidence.programs import Probe

MOST_TOGETHER = 8
Key = tuple[str, bool, str]


@dataclass(frozen=True)
class TorchJob:
    """All probes of one row; a Module runs in eval and in train mode.

    ``variants`` are generated inputs; each runs on the probes named in ``varied``, in eval mode.
    """

    source: Path
    probes: tuple[Probe, ...]
    inputs: Mapping[str, Array]
    gradient: bool
    variants: tuple[Variant, ...] = ()
    varied: frozenset[str] = frozenset()


@dataclass(frozen=True)
class MindSporeRun:
    """One probe in one mode; ``label`` says which one in messages, ``kind`` which inputs.

    Graphs of a row are compiled as one, but for those that are to run ``alone``.
    """

    label: str
    converted: Path
    harness: Path
    probe: Probe
    inputs: Mapping[str, Array]
    weights: tuple[tuple[str, str, str, Array], ...]
    cotangents: tuple[Array, ...]
    mode: str
    training: bool
    kind: str = ""
    seconds: float = 60.0
    alone: bool = False

    @property
    def key(self) -> Key:
        """Under which torch's worker has the other side of this run."""
        return self.probe.name, self.training, self.kind


def start_torch() -> None:
    """Prepare the torch worker: one thread, as two workers share the machine, and no warnings.

    torch has oneDNN too, and its answers to infinities depend on the instructions it may use
    (gelu of inf is NaN with AVX-512, inf without): both frameworks get the same ones.
    """
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (cases may print, for as long as it lives)
    warnings.simplefilter("ignore")


def start_mindspore() -> None:
    """Prepare the MindSpore worker: fast convolutions, quiet log, no torch."""
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    os.environ["GLOG_v"] = "4"  # noqa: SIM112 (its real name)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    sys.modules["torch"] = None  # type: ignore[assignment]  # an import of it raises
    import logging

    logging.disable(logging.WARNING)


def warm_torch() -> None:
    """Load torch while something else happens."""
    from migrate.evidence import torch_run  # noqa: F401


def warm_mindspore() -> None:
    """Load MindSpore while something else happens."""
    from migrate.evidence import mindspore_run  # noqa: F401


def torch_job(job: TorchJob) -> dict[Key, dict[str, Any]]:
    """(probe name, training, kind) -> what torch found, or {"error": why}."""
    found: dict[Key, dict[str, Any]] = {}
    for probe in job.probes:
        for training in (False, True) if probe.is_module else (False,):
            answer = _torch(job, probe, job.inputs, training, job.gradient)
            found[probe.name, training, probe.kind] = answer
        if probe.name not in job.varied:
            continue
        for one in job.variants:
            gradient = job.gradient and one.gradient
            answer = _torch(job, probe, one.inputs, False, gradient)
            found[probe.name, False, one.kind] = answer
    return found


def _torch(
    job: TorchJob, probe: Probe, inputs: Mapping[str, Array], training: bool, gradient: bool
) -> dict[str, Any]:
    from migrate.evidence.torch_run import run_probe

    try:
        return run_probe(job.source, probe, inputs, training, gradient)
    except Exception as error:  # whatever a call raises belongs to its case
        return {"error": describe(error)}


def mindspore_job(runs: Sequence[MindSporeRun], journal: Path) -> None:
    """Append to ``journal`` for each run what MindSpore found, or {"error": why}.

    A run that takes longer than its seconds ends the process, and leaves a trace in the file
    beside the journal: kernels that hang hold the interpreter, so nothing else can stop them.
    """
    with journal.open("ab") as answers, hang_file(journal).open("w") as trace:
        for group in groups(runs):
            faulthandler.dump_traceback_later(_seconds(group), exit=True, file=trace)
            found = _mindspore(group)
            faulthandler.cancel_dump_traceback_later()
            for one in found:
                pickle.dump(one, answers)
            answers.flush()


def groups(runs: Sequence[MindSporeRun]) -> list[list[MindSporeRun]]:
    """Neighbours that are compiled together; every other run stands alone."""
    found: list[list[MindSporeRun]] = []
    for run in runs:
        joins = run.mode == "graph" and not run.alone and found and len(found[-1]) < MOST_TOGETHER
        if joins and found[-1][-1].mode == "graph" and not found[-1][-1].alone:
            found[-1].append(run)
        else:
            found.append([run])
    return found


def _seconds(group: Sequence[MindSporeRun]) -> float:
    return max(run.seconds for run in group) + 10.0 * (len(group) - 1)


def _mindspore(group: Sequence[MindSporeRun]) -> list[dict[str, Any]]:
    from migrate.evidence.mindspore_run import run_probe, run_together

    if len(group) > 1:
        try:
            return run_together(group)
        except Exception:  # one of them is at fault: each for itself says which
            return [answer for run in group for answer in _mindspore([run])]
    try:
        return [run_probe(group[0])]
    except Exception as error:  # the finding of this run
        return [_forward_only(group[0], describe(error))]


def _forward_only(run: MindSporeRun, why: str) -> dict[str, Any]:
    """What raised may have been the gradient alone: then the result itself is silent."""
    from migrate.evidence.mindspore_run import run_probe

    if run.mode == "graph" or not run.cotangents:
        return {"error": why}
    try:
        return {**run_probe(replace(run, cotangents=())), "gradient error": why}
    except Exception:  # the result raises as well
        return {"error": why}


def hang_file(journal: Path) -> Path:
    """The file that is not empty when a run was ended for taking too long."""
    return journal.with_suffix(".hang")


def read_journal(journal: Path) -> list[dict[str, Any]]:
    """The answers that arrived; one that was cut short by a crash is left out."""
    found: list[dict[str, Any]] = []
    if not journal.is_file():
        return found
    with journal.open("rb") as answers:
        while True:
            try:
                found.append(pickle.load(answers))
            except (EOFError, pickle.UnpicklingError):
                return found


def describe(error: BaseException) -> str:
    """Type, first line and innermost place of an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
    return f"{type(error).__name__}: {(lines or ['no message'])[0][:300]}{place}"


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
        self.torch.schedule(warm_torch)
        self.mindspore.schedule(warm_mindspore)
        return self

    def __exit__(self, *error: object) -> None:
        for pool in (self.torch, self.mindspore, self.fresh):
            pool.stop()
            pool.join()


def open_pools(jobs: int) -> Pools:
    """``jobs`` MindSpore workers and one of torch, which has much less to do."""
    context = get_context("spawn")
    return Pools(
        ProcessPool(1, initializer=start_torch, context=context),
        ProcessPool(jobs, JOBS_A_WORKER, start_mindspore, context=context),
        ProcessPool(1, 1, start_mindspore, context=context),
    )


def ask_torch(pools: Pools, job: TorchJob) -> Any:
    """A future of what torch finds."""
    runs = len(job.probes) * 2 + len(job.variants) * len(job.varied)
    limit = SECONDS_A_JOB + SECONDS_A_TORCH_RUN * runs
    return pools.torch.schedule(torch_job, args=(job,), timeout=limit)


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
    future = pool.schedule(mindspore_job, args=(list(runs), journal), timeout=limit)
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
        arrived = read_journal(attempt.journal)
        answers.update(zip(waiting, arrived, strict=False))
        waiting = waiting[len(arrived) :]
        if not waiting:
            break
        first = waiting[0]
        if len(groups([runs[i] for i in waiting])[0]) > 1:
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
    trace = hang_file(attempt.journal)
    if trace.is_file() and trace.stat().st_size:
        return f"no answer within {run.seconds:.0f} s"
    return why or "the worker process gave no answer"
