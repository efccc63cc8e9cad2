"""In: jobs as plain values. Out: what a worker process found; each framework has its own.

Nothing is imported here before a job arrives: the parent must load neither framework.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.evidence.sources import Probe
from migrate.parity.exchange import Array


@dataclass(frozen=True)
class TorchJob:
    """All probes of one row; a Module runs in eval and in train mode."""

    source: Path
    probes: tuple[Probe, ...]
    inputs: Mapping[str, Array]
    gradient: bool


@dataclass(frozen=True)
class MindSporeRun:
    """One probe in one mode; ``label`` says which one in messages."""

    label: str
    converted: Path
    harness: Path
    probe: Probe
    inputs: Mapping[str, Array]
    weights: tuple[tuple[str, str, str, Array], ...]
    cotangents: tuple[Array, ...]
    mode: str
    training: bool


def start_torch() -> None:
    """Prepare the torch worker: one thread, as two workers share the machine."""
    os.environ["OMP_NUM_THREADS"] = "1"


def start_mindspore() -> None:
    """Prepare the MindSpore worker: fast convolutions, quiet log, no torch."""
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    os.environ["GLOG_v"] = "4"  # noqa: SIM112 (its real name)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.modules["torch"] = None  # type: ignore[assignment]  # an import of it raises
    import logging

    logging.disable(logging.WARNING)


def torch_job(job: TorchJob) -> dict[tuple[str, bool], dict[str, Any]]:
    """(probe name, training) -> what torch found, or {"error": why}."""
    from migrate.evidence.torch_run import run_probe

    found: dict[tuple[str, bool], dict[str, Any]] = {}
    for probe in job.probes:
        for training in (False, True) if probe.is_module else (False,):
            try:
                one = run_probe(job.source, probe, job.inputs, training, job.gradient)
            except Exception as error:  # whatever a call raises belongs to its case
                one = {"error": describe(error)}
            found[probe.name, training] = one
    return found


def mindspore_job(runs: Sequence[MindSporeRun]) -> list[dict[str, Any]]:
    """For each run what MindSpore found, or {"error": why}."""
    from migrate.evidence.mindspore_run import run_probe

    found = []
    for run in runs:
        try:
            one = run_probe(
                run.converted,
                run.harness,
                run.probe,
                run.inputs,
                run.weights,
                run.cotangents,
                run.mode,
                run.training,
            )
        except Exception as error:  # the finding of this run
            one = {"error": describe(error)}
        found.append(one)
    return found


def describe(error: BaseException) -> str:
    """Type, first line and innermost place of an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
    return f"{type(error).__name__}: {(lines or ['no message'])[0][:300]}{place}"
