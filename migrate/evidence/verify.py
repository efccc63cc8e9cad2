"""In: a Table. Out: each row's calls executed in both frameworks, recorded as evidence.

Rows stand in a queue: while MindSpore runs one, torch is ahead of it. Evidence is written along the
way, whole files at a time, so an interrupted run keeps what it has and ``changed`` takes it up.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.evidence import store
from migrate.evidence.judge import Outcome, compare_run, evidence, places, same_numbers
from migrate.evidence.programs import (
    Convert,
    Prepared,
    Probe,
    converter,
    harness_text,
    prepare,
)
from migrate.evidence.store import RowEvidence
from migrate.evidence.workers import (
    Asked,
    Key,
    MindSporeRun,
    Pools,
    TorchJob,
    ask_mindspore,
    ask_torch,
    collect,
    open_pools,
    result,
)
from migrate.mapping.table import Table

SECONDS_PYNATIVE = 20.0
SECONDS_GRAPH = 60.0
MOST_VARIED = 3  # calls of a row that run on generated inputs

AHEAD = 6  # rows that wait for torch, and rows that wait for MindSpore, for each worker
WRITE_EVERY = 20


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
    generate: bool = True,
    left_out: Collection[str] = (),
    confirm: bool = True,
) -> Summary:
    """Execute rows and record what they showed.

    ``only``: keys, names or namespaces; ``changed``: only rows without fresh evidence that
    passed; ``jobs``: MindSpore workers. ``record=False`` leaves the evidence files alone,
    ``generate=False`` runs the written cases only; ``left_out``: keys that are not executed;
    ``confirm=False``: what goes red is not executed again.
    """
    begun = time.monotonic()
    convert = convert or converter()
    keys = [key for key in _keys(table, only, changed) if key not in left_out]
    found: list[RowEvidence] = []
    with tempfile.TemporaryDirectory() as folder, open_pools(jobs) as pools:
        rows = (prepare(table, key, Path(folder), convert, generate) for key in keys)
        unwritten: list[RowEvidence] = []
        for started in _executed(table, rows, pools, Path(folder), AHEAD * jobs):
            one = _finish(started, pools, confirm)
            progress(_line(one))
            found.append(one)
            unwritten.append(one)
            if record and len(unwritten) >= WRITE_EVERY:
                store.write(table, unwritten)
                unwritten.clear()
        if record:
            store.write(table, unwritten)
    return Summary(tuple(found), time.monotonic() - begun)


def _keys(table: Table, only: Sequence[str], changed: bool) -> list[str]:
    keys = [key for key in store.executable(table) if not only or _chosen(key, only)]
    waiting = set(store.stale(table)) if changed else set(keys)
    return [key for key in keys if key in waiting]


def _line(one: RowEvidence) -> str:
    modes = "+".join(one.modes) or "no mode"
    head = f"{one.verdict:8} {one.key}  {one.calls} calls, {one.elements} elements, {modes}"
    kinds = f"{len(one.holds)} kinds hold, {len(one.refuses)} refused"
    return "\n".join(
        [f"{head}, gradient {one.gradient}; {kinds}", *(f"    {f}" for f in one.failures)]
    )


def _chosen(key: str, only: Sequence[str]) -> bool:
    name = key.partition(":")[0]
    return any(key == one or name == one or name.startswith(f"{one}.") for one in only)


@dataclass(frozen=True)
class Started:
    """A row whose MindSpore runs are on their way. ``why``: torch's worker gave no answer."""

    row: Prepared
    expected: Mapping[Key, Any]
    why: str
    asked: Asked


def _executed(
    table: Table, rows: Iterator[Prepared], pools: Pools, folder: Path, ahead: int
) -> Iterator[Started]:
    """The rows in order, with ``ahead`` of them in each worker's queue."""
    with_torch: deque[tuple[Prepared, Any]] = deque()
    with_mindspore: deque[Started] = deque()
    for row in rows:
        with_torch.append((row, _ask(row, pools)))
        if len(with_torch) > ahead:
            with_mindspore.append(_start(table, *with_torch.popleft(), pools, folder))
        if len(with_mindspore) > ahead:
            yield with_mindspore.popleft()
    while with_torch:
        with_mindspore.append(_start(table, *with_torch.popleft(), pools, folder))
    while with_mindspore:
        yield with_mindspore.popleft()


def _ask(row: Prepared, pools: Pools) -> Any:
    if row.inputs is None:
        return None
    gradient = row.case.gradient
    names = varied(row)
    job = TorchJob(row.source, row.probes, row.inputs, gradient, row.variants, names)
    return ask_torch(pools, job)


def _start(table: Table, row: Prepared, future: Any, pools: Pools, folder: Path) -> Started:
    expected, why = result(future)
    runs = mindspore_runs(table, row, expected or {}, folder)
    journal = folder / f"{row.converted.stem}.journal"
    return Started(row, expected or {}, why, ask_mindspore(pools.mindspore, runs, journal))


def _finish(started: Started, pools: Pools, confirm: bool) -> RowEvidence:
    found = _judged(started, collect(pools.mindspore, started.asked))
    red = len(found.modes) < len(started.row.case.modes)
    if confirm and red and started.asked.runs:
        # another row may have left the worker in a bad state: a red row has to be red on its own
        journal = started.asked.journal.with_suffix(".fresh")
        again = ask_mindspore(pools.fresh, started.asked.runs, journal)
        found = _judged(started, collect(pools.fresh, again))
    return found


def _judged(started: Started, answers: Sequence[Mapping[str, Any]]) -> RowEvidence:
    row, case = started.row, started.row.case
    problems = [*row.problems, *([f"torch: {started.why}"] if started.why else [])]
    for (name, training, kind), wanted in started.expected.items():
        if "error" in wanted and not kind:
            probe = next(p for p in row.probes if p.name == name)
            problems.append(f"torch: {label(probe, training)}: {wanted['error']}")
    outcomes: list[Outcome] = []
    for run, answer in zip(started.asked.runs, answers, strict=True):
        outcomes += compare_run(run, started.expected[run.key], answer, case.random)
    return evidence(case, row.sha256, row.probes, outcomes, problems)


def label(probe: Probe, training: bool, kind: str = "") -> str:
    """How messages name a run."""
    how = " (as a value)" if probe.through_ref else ""
    on = f" on {kind}" if kind and kind != probe.kind else ""
    return f"{probe.call}{how}{', train' if training else ''}{on}"


def varied(row: Prepared) -> frozenset[str]:
    """The probes that run on generated inputs: the first calls that have floating inputs."""
    chosen = [p.name for p in row.probes if p.floating and not p.through_ref and not p.kind]
    return frozenset(chosen[:MOST_VARIED]) if row.variants else frozenset()


def mindspore_runs(
    table: Table, row: Prepared, expected: Mapping[Key, Any], folder: Path
) -> list[MindSporeRun]:
    """The runs of a row: written cases in each mode first, generated inputs after them."""
    probes = {probe.name: probe for probe in row.probes}
    inputs = {"": row.inputs or {}, **{one.kind: one.inputs for one in row.variants}}
    runs = []
    for (name, training, kind), wanted in expected.items():
        if "error" in wanted:
            continue
        harness = _harness(probes[name], row.converted.stem, wanted, folder)
        random = wanted["random"] or row.case.random
        for mode in _modes(row, expected, (name, training, kind)):
            runs.append(
                MindSporeRun(
                    label(probes[name], training, kind),
                    row.converted,
                    harness,
                    probes[name],
                    inputs.get(kind, inputs[""]),
                    places(table, wanted),
                    () if random else tuple(wanted["cotangents"]),
                    mode,
                    training,
                    kind,
                    SECONDS_GRAPH if mode == "graph" else SECONDS_PYNATIVE,
                )
            )
    return sorted(runs, key=lambda run: (bool(run.kind), run.mode == "graph"))


def _modes(row: Prepared, expected: Mapping[Key, Any], key: Key) -> tuple[str, ...]:
    name, training, kind = key
    if kind:
        return tuple(mode for mode in row.case.modes if mode == "pynative")
    # a class that behaves alike in both modes of training is compiled in one of them only
    twin = expected.get((name, False, ""), {})
    if training and same_numbers(expected[key], twin):
        return tuple(mode for mode in row.case.modes if mode != "graph")
    return row.case.modes


def _harness(probe: Probe, module: str, wanted: Mapping[str, Any], folder: Path) -> Path:
    text = harness_text(probe, module, wanted["heads"])
    stem = f"{module}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    path = folder / f"{stem}.py"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
    return path
