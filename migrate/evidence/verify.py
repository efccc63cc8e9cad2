"""In: a Table. Out: each row's calls executed in both frameworks, recorded as evidence.

Torch and MindSpore run in worker processes of their own that are reused; a crash or a hang costs
one run: the row is then repeated run by run.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from migrate.evidence import store, workers
from migrate.evidence.harness import harness_text
from migrate.evidence.judge import Outcome, compare_run, evidence, places, same_numbers
from migrate.evidence.prepare import Convert, Prepared, converter, prepare
from migrate.evidence.sources import Probe
from migrate.evidence.store import RowEvidence
from migrate.table import Table

SECONDS_A_RUN = 60.0
SECONDS_EACH = 6.0  # what each further run of the same row may add
MOST_LOST = 2
CHUNK = 8
ROWS_A_WORKER = 60  # what MindSpore compiled stays in memory until its process ends


@dataclass(frozen=True)
class Summary:
    """One run of ``verify``: what was executed, and how long it took in seconds."""

    rows: tuple[RowEvidence, ...]
    seconds: float = 0.0

    @property
    def failed(self) -> tuple[RowEvidence, ...]:
        return tuple(row for row in self.rows if not row.passed)

    @property
    def elements(self) -> int:
        return sum(row.elements for row in self.rows)

    @property
    def passed(self) -> bool:
        return not self.failed

    @property
    def text(self) -> str:
        """One line: how many rows, with which verdicts, how many numbers were compared."""
        if not self.rows:
            return "no row was executed: no row with a case has such a name, or all are fresh"
        counts = Counter(row.verdict for row in self.rows)
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        return (
            f"{len(self.rows)} rows in {self.seconds:.0f} s: {verdicts}; "
            f"{self.elements} numbers compared, {len(self.failed)} rows failed"
        )


def verify(
    table: Table,
    only: Sequence[str] = (),
    changed: bool = False,
    jobs: int = 1,
    progress: Callable[[str], None] = print,
    record: bool = True,
    convert: Convert | None = None,
) -> Summary:
    """Execute rows and record what they showed.

    ``only``: keys, names or namespaces; ``changed``: only rows without fresh evidence that
    passed; ``jobs``: MindSpore workers. ``record=False`` leaves the evidence files alone.
    """
    begun = time.monotonic()
    convert = convert or converter()
    keys = [key for key in store.executable(table) if not only or _chosen(key, only)]
    if changed:
        waiting = set(store.stale(table))
        keys = [key for key in keys if key in waiting]
    found: list[RowEvidence] = []
    with tempfile.TemporaryDirectory() as folder, _pools(jobs) as pools:
        for first in range(0, len(keys), CHUNK):
            chunk = [prepare(table, key, Path(folder), convert) for key in keys[first:][:CHUNK]]
            done = _run_chunk(table, chunk, pools, Path(folder))
            found += done
            for one in done:
                progress(_line(one))
            if record:
                store.write(table, done)
    return Summary(tuple(found), time.monotonic() - begun)


def _line(one: RowEvidence) -> str:
    modes = "+".join(one.modes) or "no mode"
    head = f"{one.verdict:8} {one.key}  {one.calls} calls, {one.elements} elements, {modes}"
    return "\n".join([f"{head}, gradient {one.gradient}", *(f"    {f}" for f in one.failures)])


def _chosen(key: str, only: Sequence[str]) -> bool:
    name = key.partition(":")[0]
    return any(key == one or name == one or name.startswith(f"{one}.") for one in only)


@dataclass(frozen=True)
class Pools:
    """The worker processes of both frameworks."""

    torch: ProcessPool
    mindspore: ProcessPool

    def __enter__(self) -> Pools:
        return self

    def __exit__(self, *error: object) -> None:
        for pool in (self.torch, self.mindspore):
            pool.stop()
            pool.join()


def _pools(jobs: int) -> Pools:
    context = get_context("spawn")
    return Pools(
        ProcessPool(max_workers=1, initializer=workers.start_torch, context=context),
        ProcessPool(jobs, ROWS_A_WORKER, workers.start_mindspore, context=context),
    )


def _run_chunk(
    table: Table, chunk: Sequence[Prepared], pools: Pools, folder: Path
) -> list[RowEvidence]:
    waiting = {
        one.row.key: pools.torch.schedule(
            workers.torch_job,
            args=(workers.TorchJob(one.source, one.probes, one.inputs, one.case.gradient),),
            timeout=SECONDS_A_RUN + SECONDS_EACH * len(one.probes),
        )
        for one in chunk
        if one.inputs is not None
    }
    started = []
    for one in chunk:
        expected, why = _result(waiting.get(one.row.key))
        runs = _runs(table, one, expected or {}, folder)
        limit = SECONDS_A_RUN + SECONDS_EACH * len(runs)
        future = pools.mindspore.schedule(workers.mindspore_job, args=(runs,), timeout=limit)
        started.append((one, expected or {}, why, runs, future))
    return [
        _finish(one, expected, why, runs, future, pools)
        for one, expected, why, runs, future in started
    ]


def _result(future: Any) -> tuple[Any, str]:
    """(what a worker answered, "") or (None, why it did not)."""
    if future is None:
        return None, ""
    try:
        return future.result(), ""
    except FutureTimeout:
        return None, f"no answer within {SECONDS_A_RUN:.0f} s"
    except ProcessExpired as error:
        return None, f"the worker process died with exit code {error.exitcode}"


def _runs(
    table: Table, one: Prepared, expected: Mapping[tuple[str, bool], Any], folder: Path
) -> list[workers.MindSporeRun]:
    runs = []
    for (name, training), wanted in expected.items():
        if "error" in wanted:
            continue
        probe = next(probe for probe in one.probes if probe.name == name)
        harness = folder / f"{one.converted.stem}_{name}_{'train' if training else 'eval'}.py"
        text = harness_text(probe, one.converted.stem, wanted["heads"])
        harness.write_text(text, encoding="utf-8")
        random = wanted["random"] or one.case.random
        # a class that behaves alike in both modes of training is compiled in one of them only
        alike = training and same_numbers(wanted, expected.get((name, False), {}))
        for mode in one.case.modes:
            if mode == "graph" and alike:
                continue
            runs.append(
                workers.MindSporeRun(
                    _label(probe, training),
                    one.converted,
                    harness,
                    probe,
                    one.inputs or {},
                    places(table, wanted),
                    () if random else tuple(wanted["cotangents"]),
                    mode,
                    training,
                )
            )
    return runs


def _label(probe: Probe, training: bool) -> str:
    how = " (as a value)" if probe.through_ref else ""
    return f"{probe.call}{how}{', train' if training else ''}"


def _one_by_one(runs: Sequence[workers.MindSporeRun], pools: Pools) -> list[dict[str, Any]]:
    """The answers of single runs; after two that hang or crash the rest is not tried."""
    answers: list[dict[str, Any]] = []
    lost = 0
    for run in runs:
        if lost == MOST_LOST:
            answers.append({"error": "not tried: other runs of this row hung or crashed"})
            continue
        future = pools.mindspore.schedule(
            workers.mindspore_job, args=([run],), timeout=SECONDS_A_RUN
        )
        answer, why = _result(future)
        answers.append(answer[0] if answer else {"error": why})
        lost += not answer
    return answers


def _finish(
    one: Prepared,
    expected: Mapping[tuple[str, bool], Any],
    why: str,
    runs: Sequence[workers.MindSporeRun],
    future: Any,
    pools: Pools,
) -> RowEvidence:
    answers, _ = _result(future)
    if answers is None:  # a crash or hang: find out which run it was
        answers = _one_by_one(runs, pools)
    problems = [*one.problems, *([f"torch: {why}"] if why else [])]
    for (name, training), wanted in expected.items():
        if "error" in wanted:
            probe = next(p for p in one.probes if p.name == name)
            problems.append(f"torch: {_label(probe, training)}: {wanted['error']}")
    outcomes: list[Outcome] = []
    for run, answer in zip(runs, answers, strict=True):
        wanted = expected[run.probe.name, run.training]
        random = one.case.random
        outcomes += compare_run(run.label, run.mode, wanted, answer, random, run.weights)
    return evidence(one.row.key, one.sha256, one.probes, outcomes, one.case.modes, problems)
