"""In: --cluster. Out: the results of a run without it, from processes of dask, also killed ones."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from migrate.parity.request import VerifyRequest
from migrate.records.outcomes import Problem

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="needs the extra [cluster]"
)
WITH_FRAMEWORKS = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
    reason="needs torch and MindSpore",
)
NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.first = nn.Linear(6, width)
        self.second = nn.Linear(width, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
"""
MODELS = "[tool.torch2ms.verify]\n" + "".join(
    f'[[tool.torch2ms.verify.model]]\nfile = "net.py"\nbuild = "Net({width})"\ninput = ["5x6"]\n'
    for width in (2, 3, 4, 5)
)


@pytest.fixture
def out(run, write) -> Path:
    root = write({"net.py": NET})
    folder = root.parent / "out"
    assert run("convert", root, "-o", folder).code == 0
    (folder / "pyproject.toml").write_text(MODELS)
    return folder


def start(out: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "migrate", "verify", str(out), *options]
    return subprocess.Popen(
        command, cwd=out, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip


def result(out: Path) -> dict:
    """What was found, without the seconds."""
    found = json.loads((out / "torch2ms.verify.json").read_text(encoding="utf-8"))
    for model in found["models"]:
        model.pop("seconds")
        for rung in model["rungs"]:
            rung.pop("seconds")
    return found


def descendants(process: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{process}/task").glob("*"):
        try:
            own = [int(word) for word in (task / "children").read_text().split()]
        except OSError:
            continue
        for child in own:
            found += [child, *descendants(child)]
    return found


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@WITH_FRAMEWORKS
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_processes_of_a_cluster_find_what_one_machine_finds(out: Path) -> None:
    alone = start(out)
    assert alone.communicate(timeout=400)[0] and alone.returncode == 0
    expected = result(out)
    assert [m["build"] for m in expected["models"]] == [f"Net({w})" for w in (2, 3, 4, 5)]
    (out / "torch2ms.verify.json").unlink()
    spread = start(out, "--cluster", "local:2")
    said = spread.communicate(timeout=400)[0]
    assert spread.returncode == 0, said
    assert result(out) == expected
    assert "forward train" in said, "progress comes from the processes"
    assert not list(out.glob("*.partial"))


@WITH_FRAMEWORKS
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_process_of_the_cluster_costs_nothing(out: Path) -> None:
    process = start(out, "--cluster", "local:2")
    assert process.stdout is not None
    for line in process.stdout:
        if "forward train" in line:
            break
    mine = descendants(process.pid)
    nannied = [p for p in mine if "spawn_main" in command_of(p)]
    assert nannied, [command_of(p) for p in mine]
    os.kill(nannied[0], signal.SIGKILL)
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    found = result(out)
    assert {m["verdict"] for m in found["models"]} == {"PASS"} and len(found["models"]) == 4
    time.sleep(1.0)
    left = [command_of(p) for p in mine if "parity" in command_of(p)]
    assert not left, left


def test_no_cluster_there_is_said(tmp_path: Path) -> None:
    from migrate.parity import cluster

    request = VerifyRequest(tmp_path / "r.json", tmp_path, cluster="no such place")
    with (
        pytest.raises(Problem, match=r"no cluster at no such place.*; start one"),
        cluster.open_cluster(request),
    ):
        pass


def test_a_machine_that_sees_other_files_is_refused(tmp_path: Path) -> None:
    from migrate.parity import cluster

    record = tmp_path / "r.json"
    record.write_text("{}")
    own = cluster.sight(record)
    assert own[1] != cluster.sight(tmp_path / "none.json")[1] == "FileNotFoundError"

    class Client:
        def run(self, function: object, path: Path) -> dict[str, tuple[str, str]]:
            return {"tcp://here:1": own, "tcp://there:1": (own[0], "FileNotFoundError")}

    with pytest.raises(Problem, match="tcp://there:1: sees other files"):
        cluster._checked(Client(), VerifyRequest(record, tmp_path))


def test_the_extra_is_named_where_it_is_missing(
    run, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "distributed" else real(name)
    )
    done = run("verify", out, "--cluster", "local:2")
    assert done.code == 2
    assert "torch2mindspore[cluster]" in done.err
