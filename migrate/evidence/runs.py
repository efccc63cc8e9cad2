"""In: a prepared row and what torch found. Out: its harness files, and the runs of MindSpore."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrate.evidence.harness import harness_text
from migrate.evidence.judge import places, same_numbers
from migrate.evidence.prepare import Prepared
from migrate.evidence.sources import Probe
from migrate.evidence.workers import Key, MindSporeRun
from migrate.table import Table

SECONDS_PYNATIVE = 20.0
SECONDS_GRAPH = 60.0
MOST_VARIED = 3  # calls of a row that run on generated inputs


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
