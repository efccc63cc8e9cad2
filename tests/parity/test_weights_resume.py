"""In: training that torch broke off. Out: that MindSpore goes on alike, and back again."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.cli.app import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
        reason="needs torch and MindSpore",
    ),
]
PROGRAM = """
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, bias=False)  # a bias before a norm has no gradient but noise
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.norm(self.conv(x))).flatten(1))


def train(source, target, steps):
    model = Net()
    criterion = nn.MSELoss()
    optimizer = OPTIMIZER
    epoch = 0
    if source != "-":
        held = torch.load(source)
        model.load_state_dict(held["model"])
        optimizer.load_state_dict(held["optimizer"])
        epoch = held["epoch"]
    for i in range(steps):
        x = torch.sin(torch.arange(64).reshape(4, 2, 8) * (epoch + i + 1.0))
        y = torch.cos(torch.arange(12).reshape(4, 3) * (epoch + i + 1.0))
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    epoch += steps
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, target)


if __name__ == "__main__":
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""
OPTIMIZERS = {
    "adamw": "torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)",
    "amsgrad": "torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)",
    "sgd": "torch.optim.SGD(model.parameters(), lr=0.05)",
    "nesterov": "torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)",
    "rmsprop": "torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5, centered=True)",
}
COMPARE = """
import sys, torch
one, other = (torch.load(path, weights_only=True) for path in sys.argv[1:3])
assert one["epoch"] == other["epoch"] == 6, (one["epoch"], other["epoch"])
for key, value in one["model"].items():
    if not key.endswith("num_batches_tracked"):
        torch.testing.assert_close(other["model"][key], value, rtol=2e-5, atol=2e-6)
first = torch.load(sys.argv[3], weights_only=True)["model"]
assert not torch.equal(first["conv.weight"], one["model"]["conv.weight"])
states = [held["optimizer"]["state"] for held in (one, other)]
assert states[0].keys() == states[1].keys()
for key, row in states[0].items():
    for name, value in row.items():
        if name == "step" and "square_avg" in row or value is None:
            continue
        torch.testing.assert_close(states[1][key][name], value, rtol=1e-4, atol=1e-6)
"""


def run(*command: object, cwd: Path) -> None:
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    subprocess.run(
        [sys.executable, *map(str, command)], check=True, cwd=cwd, env=environment, timeout=200
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_in_the_other_framework(tmp_path: Path, name: str) -> None:
    source = tmp_path / "train.py"
    source.write_text(PROGRAM.replace("OPTIMIZER", OPTIMIZERS[name]))
    out = tmp_path / "out"
    assert main(["convert", str(source), "-o", str(out)]) == 0
    run(source, "-", "start.pth", 3, cwd=tmp_path)
    run(source, "start.pth", "torch.pth", 3, cwd=tmp_path)
    convert = ["weights", "convert"]
    options = ["--record", str(out), "--build", "Net()"]
    start, end = tmp_path / "start.ckpt", tmp_path / "end.ckpt"
    assert main([*convert, str(tmp_path / "start.pth"), str(start), *options]) == 0
    run(out / "train.py", start, end, 3, cwd=tmp_path)
    back = tmp_path / "back.pth"
    assert main([*convert, str(end), str(back), *options]) == 0
    run("-c", COMPARE, tmp_path / "torch.pth", back, tmp_path / "start.pth", cwd=tmp_path)
    run(source, back, "further.pth", 1, cwd=tmp_path)  # torch takes it up again
