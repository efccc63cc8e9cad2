"""In: torch scripts for two processes. Out: that the converted ones compute the same by msrun."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.workspace.project import convert_text

PROGRAMS = sorted((Path(__file__).parent / "parallel_programs").glob("*.py"))
STRICT = """import mindspore
mindspore.set_context(mode=mindspore.GRAPH_MODE, jit_syntax_level=mindspore.STRICT)
"""
needs_frameworks = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
    reason="needs torch and MindSpore",
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def started(launcher: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ours = {"PATH": paths, "ONEDNN_MAX_CPU_ISA": "AVX2", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        launcher, capture_output=True, text=True, timeout=400, cwd=folder,
        env={**os.environ, **ours},
    )  # fmt: skip


def result(text: str, told: str) -> dict[str, Any]:
    lines = [line for line in text.splitlines() if line.startswith("RESULT ")]
    assert len(lines) == 1, told[-3000:]
    found = json.loads(lines[0].removeprefix("RESULT "))
    assert isinstance(found, dict) and found
    return found


def by_torch(path: Path, folder: Path) -> dict[str, Any]:
    """What two processes of torch say, by gloo."""
    port = str(free_port())
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    done = started([*launcher, "--master_port", port, str(path)], folder)
    return result(done.stdout, done.stderr)


def by_mindspore(path: Path, folder: Path) -> dict[str, Any]:
    """What two processes of MindSpore say, started by msrun."""
    logs = folder / "logs"
    launcher = ["msrun", "--worker_num=2", "--local_worker_num=2", "--join=True"]
    started([*launcher, f"--master_port={free_port()}", f"--log_dir={logs}", str(path)], folder)
    text = "\n".join(log.read_text() for log in sorted(logs.glob("worker_*.log")))
    return result(text, text)


@pytest.mark.slow
@needs_frameworks
@pytest.mark.parametrize("mode", ["pynative", "graph"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_two_processes_train_as_in_torch(path: Path, mode: str, tmp_path: Path) -> None:
    made = convert_text(path.read_text(encoding="utf-8"), table.load(()))
    flagged = [e for e in made.entries if e.outcome is Outcome.FLAGGED]
    assert not flagged, flagged
    target = tmp_path / path.name
    target.write_text((STRICT if mode == "graph" else "") + made.text, encoding="utf-8")
    expected, found = by_torch(path, tmp_path), by_mindspore(target, tmp_path)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if key == "orders":
            assert found[key] == value
            continue
        rows = zip(found[key], value, strict=True) if isinstance(value[0], list) else [
            (found[key], value)
        ]  # fmt: skip
        for mine, theirs in rows:
            assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-5), key


@needs_frameworks
@pytest.mark.parametrize("size", [1, 2, 5, 38])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_distributed_sampler_gives_the_indices_of_torch(size: int, shuffle: bool) -> None:
    from torch.utils.data.distributed import DistributedSampler as OfTorch

    from migrate.helpers.samplers import DistributedSampler

    for world in (1, 2, 3):
        for rank in range(world):
            for epoch in (0, 7):
                data = range(size)
                theirs = OfTorch(data, world, rank, shuffle, 11)  # type: ignore[arg-type, var-annotated]
                ours = DistributedSampler(data, world, rank, shuffle, 11)
                theirs.set_epoch(epoch)
                ours.set_epoch(epoch)
                assert list(ours) == list(theirs) and len(ours) == len(theirs)
