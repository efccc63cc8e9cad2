"""In: checkpoints and what verify found. Out: a whole .ckpt, or a reason and no file."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from migrate import record
from migrate.cli import main
from migrate.commands.weights import chosen, lines
from migrate.errors import Problem
from migrate.outcomes import Verdict
from migrate.parity.checkpoint import Converted
from migrate.result import ModelResult, Verification

MODEL = ModelResult(
    name="Net", source="net.py", build="Net()", inputs=(), verdict="PASS",
    weight_names={"bn.weight": "bn.gamma", "bn.steps": "", "fc.weight": "fc.weight"},
)  # fmt: skip
SAVE = """
import os, sys, torch

class Hostile:
    def __reduce__(self):
        return os.mkdir, (sys.argv[1] + ".ran",)

state = {"bn.weight": torch.tensor([1.5, -2.0]), "fc.weight": torch.full((2, 3), 0.1),
         "bn.steps": torch.tensor(7)}
torch.save(state, sys.argv[1] + "/whole.pth")
torch.save({**state, "new": torch.ones(1)}, sys.argv[1] + "/more.pth")
torch.save({"bn.weight": state["bn.weight"]}, sys.argv[1] + "/less.pth")
torch.save({**state, "code": Hostile()}, sys.argv[1] + "/hostile.pth")
data = open(sys.argv[1] + "/whole.pth", "rb").read()
open(sys.argv[1] + "/short.pth", "wb").write(data[: len(data) // 2])
"""
LOAD = """
import sys, mindspore as ms
found = ms.load_checkpoint(sys.argv[1])
print({name: value.asnumpy().tobytes().hex() for name, value in sorted(found.items())})
"""
NEEDS = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
    reason="needs torch and MindSpore",
)


def verified(*models: ModelResult) -> Verification:
    return Verification(tool_version="0", verdict=Verdict.PASS, environment={}, models=models)


def output(folder: Path, *models: ModelResult) -> Path:
    """A converted file, and that these models of it were verified."""
    (folder / "net.py").write_text("import torch\n\n\ndef f(x):\n    return torch.abs(x)\n")
    assert main(["convert", str(folder / "net.py"), "-o", str(folder / "out")]) == 0
    located = record.locate(folder / "out")
    located.verification.write_bytes(record.text(verified(*models)))
    return folder / "out"


def test_the_one_verified_model_is_taken_and_several_are_asked_about(tmp_path: Path) -> None:
    other = MODEL.model_copy(update={"build": "Net(2)"})
    assert chosen(verified(MODEL), None, tmp_path) is MODEL
    assert chosen(verified(MODEL, other), "Net(2)", tmp_path) is other
    with pytest.raises(Problem, match="several models"):
        chosen(verified(MODEL, other), None, tmp_path)
    with pytest.raises(Problem, match="no such model"):
        chosen(verified(MODEL), "Net(3)", tmp_path)
    with pytest.raises(Problem, match="not verified"):
        chosen(None, None, tmp_path)


def test_every_tensor_is_accounted_for() -> None:
    shown = "\n".join(lines(Converted(("a",), ("b",), ("c",), ("d",)), Path("x.ckpt")))
    assert "Tensors: 3 = 1 converted + 1 not needed + 1 unknown" in shown
    assert "not in the model: c" in shown
    assert "not in the file: d" in shown
    assert "Nothing was written" in shown


@pytest.mark.parametrize(("source", "target"), [("no.pth", "a.ckpt"), ("net.py", "a.ckpt")])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, source: str, target: str) -> None:
    out = output(tmp_path, MODEL)
    args = ["weights", "convert", str(tmp_path / source), str(tmp_path / target)]
    assert main([*args, "--record", str(out)]) == 2
    assert not (tmp_path / target).exists()


@NEEDS
@pytest.mark.slow
def test_a_file_is_converted_whole_or_not_at_all(tmp_path: Path) -> None:
    out = output(tmp_path, MODEL)
    subprocess.run([sys.executable, "-c", SAVE, str(tmp_path)], check=True)
    expected = {"more": 1, "less": 1, "hostile": 2, "short": 2, "whole": 0}
    for name, code in expected.items():
        target = tmp_path / f"{name}.ckpt"
        args = ["weights", "convert", str(tmp_path / f"{name}.pth"), str(target)]
        assert main([*args, "--record", str(out)]) == code, name
        assert target.exists() == (code == 0), name
    assert not list(tmp_path.glob("*.ran"))
    assert not list(tmp_path.glob(".torch2ms-*"))
    command = [sys.executable, "-c", LOAD, str(tmp_path / "whole.ckpt")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str({"bn.gamma": "0000c03f000000c0", "fc.weight": "cdcccc3d" * 6})
