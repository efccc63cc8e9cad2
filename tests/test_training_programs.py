"""In: tests/training_programs. Out: whether they train alike in MindSpore, step by step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate.workspace import outputs
from migrate.workspace.project import Request, convert, convert_text

PROGRAMS = Path(__file__).parent / "training_programs"
ALONE = Path(__file__).parent / "training_alone"  # what other programs of a folder may change
RUNNER = Path(__file__).parent / "training_runner.py"


def trained(folder: Path, framework: str, mode: str, results: Path) -> None:
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    command = [sys.executable, str(RUNNER), str(folder), framework, mode, str(results)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for key in sorted(value) for n in numbers(value[key])]
    if isinstance(value, list):
        return [n for item in value for n in numbers(item)]
    return [float(value)]


def difference(results: Path, name: str) -> float:
    """The largest difference of anything the program gives back, or of a trained weight.

    Of numbers above 1, such as sums over all steps, it is the share.
    """
    read = [
        json.loads((results / f"{name}.{f}.json").read_text(encoding="utf-8"))
        for f in ("torch", "mindspore")
    ]
    ours, theirs = (np.array(numbers(r)) for r in read)
    assert ours.shape == theirs.shape
    return float((np.abs(ours - theirs) / np.maximum(1.0, np.abs(ours))).max())


def test_nothing_is_flagged() -> None:
    done = convert(Request(PROGRAMS, PROGRAMS.parent / "unwritten", jobs=1))
    assert not done.record.ledger.flagged
    for path in ALONE.glob("*.py"):
        done = convert(Request(path, path.parent / "unwritten.py", jobs=1))
        assert not done.record.ledger.flagged, path.stem


KEPT = """import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.losses = nn.Linear(6, 3), {}

    def get_losses(self, x):
        self.losses["l2"] = self.fc(x).pow(2).mean()
        return self.losses

def train(model: Model, data):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in data:
        losses = model.get_losses(x)
        loss = losses["l2"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses["total"] = 2
"""


def test_a_dict_that_others_hold_is_no_copy() -> None:
    assert "return loss, losses\n" in convert_text(KEPT).text
    read = KEPT.replace('losses["total"] = 2', 'print(losses["l2"])')
    assert "return loss, (tuple(losses.keys()), tuple(losses.values()))\n" in (
        convert_text(read).text
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)  # some eighty programs in both frameworks
@pytest.mark.parametrize("mode", ["pynative", "graph"])
def test_they_train_alike(mode: str, tmp_path: Path) -> None:
    done = convert(Request(PROGRAMS, tmp_path / "out", jobs=1))
    outputs.write(done.outputs, tmp_path / "out")
    (tmp_path / "results").mkdir()
    trained(PROGRAMS, "torch", "", tmp_path / "results")
    trained(tmp_path / "out", "mindspore", mode, tmp_path / "results")
    for path in ALONE.glob("*.py"):
        alone = convert(Request(path, tmp_path / "alone" / path.name, jobs=1))
        outputs.write(alone.outputs, tmp_path / "alone")
    trained(ALONE, "torch", "", tmp_path / "results")
    trained(tmp_path / "alone", "mindspore", mode, tmp_path / "results")
    names = sorted(path.stem for path in (*PROGRAMS.glob("*.py"), *ALONE.glob("*.py")))
    found = {name: difference(tmp_path / "results", name) for name in names}
    assert {n: d for n, d in found.items() if d > 1e-5} == {}
