"""In: checkpoints and what verify found. Out: a whole file of the other framework, or none."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.cli import weights
from migrate.cli.app import main
from migrate.cli.weights import Wanted, chosen, lines
from migrate.parity.checkpoint import Account, Converted
from migrate.records.outcomes import Problem, Verdict
from migrate.records.result import ModelResult, Verification
from migrate.workspace import record

MODEL = ModelResult(
    name="Net", source="net.py", build="Net()", inputs=(), verdict="PASS",
    weight_names={"bn.weight": "bn.gamma", "bn.steps": "", "fc.weight": "fc.weight"},
)  # fmt: skip
SAVE = """
import argparse, json, os, sys, torch
from safetensors.torch import save_file

class Hostile:
    def __reduce__(self):
        return os.mkdir, (sys.argv[1] + ".ran",)

root = sys.argv[1]
state = {"bn.weight": torch.tensor([1.5, -2.0]), "fc.weight": torch.full((2, 3), 0.1),
         "bn.steps": torch.tensor(7)}
torch.save(state, root + "/whole.pth")
torch.save({**state, "new": torch.ones(1)}, root + "/more.pth")
torch.save({"bn.weight": state["bn.weight"]}, root + "/less.pth")
torch.save({**state, "code": Hostile()}, root + "/hostile.pth")
torch.save({"a": torch.ones(2)}, root + "/other.pth")
torch.save([1, 2], root + "/list.pth")
torch.save({**state, "fc.weight": torch.ones(2, 3, dtype=torch.complex64)}, root + "/complex.pth")
half = {key: one.bfloat16() if one.is_floating_point() else one for key, one in state.items()}
half["bn.weight"].view(torch.int16)[0] = 0x7FC1  # a NaN with a mark: bits must stay
torch.save({"state_dict": {"module." + key: one for key, one in half.items()}}, root + "/half.pth")
data = open(root + "/whole.pth", "rb").read()
open(root + "/short.pth", "wb").write(data[: len(data) // 2])
open(root + "/noise.pth", "wb").write(b"not a checkpoint")
open(root + "/noise.safetensors", "wb").write(bytes([255]) * 64)
open(root + "/noise.ckpt", "wb").write(b"not a checkpoint")
save_file({"bn.weight": state["bn.weight"]}, root + "/m-1.safetensors")
save_file({k: state[k] for k in ("fc.weight", "bn.steps")}, root + "/m-2.safetensors")
shards = {"bn.weight": "m-1", "fc.weight": "m-2", "bn.steps": "m-2"}
def index(name, shards):
    where = {key: shard + ".safetensors" for key, shard in shards.items()}
    with open(f"{root}/{name}.safetensors.index.json", "w") as opened:
        json.dump({"metadata": {}, "weight_map": where}, opened)
index("sharded", shards)
index("outside", {**shards, "fc.weight": "../m-2"})
index("lost", {**shards, "fc.weight": "m-3"})
index("wrong", {**shards, "fc.weight": "m-1"})
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


def convert(source: Path, target: Path, out: Path, *options: str) -> int:
    return main(["weights", "convert", str(source), str(target), "--record", str(out), *options])


def test_the_one_verified_model_is_taken_and_several_are_asked_about(tmp_path: Path) -> None:
    other = MODEL.model_copy(update={"build": "Net(2)"})
    assert chosen((MODEL,), None, tmp_path) is MODEL
    assert chosen((MODEL, other), "Net(2)", tmp_path) is other
    with pytest.raises(Problem, match="several models"):
        chosen((MODEL, other), None, tmp_path)
    with pytest.raises(Problem, match="no such model"):
        chosen((MODEL,), "Net(3)", tmp_path)


def test_another_model_is_never_taken_without_a_word(tmp_path: Path, monkeypatch) -> None:
    """The only verified model was of another file, and 121 tensors had no partner."""
    other = MODEL.model_copy(update={"build": "Head()", "source": "head.py"})
    asked: list[str] = []

    def paired(located: record.Located, wanted: Wanted) -> Verification:
        asked.append(located.file)
        return verified(MODEL)

    monkeypatch.setattr(weights, "_paired", paired)
    out = output(tmp_path, other)
    located = record.locate(out / "net.py")
    assert weights._model(located, out, Wanted()) == MODEL
    assert asked == ["net.py"]
    whole = weights._model(record.locate(out), out, Wanted())
    assert whole.build == "Head()"
    account = Account({"a": "x"}, {}, {f"w{n}": "" for n in range(121)}, [])
    done = Converted(account, False, ("x.ckpt",))
    with pytest.raises(Problem, match=r"not those of Head\(\) of head.py: 121 of 122"):
        weights._check_fit(done, whole, Path("x.pth"), Wanted(partial=True))
    weights._check_fit(done, whole, Path("x.pth"), Wanted(build="Head()"))


def test_every_tensor_is_accounted_for() -> None:
    account = Account({"a": "x"}, {"b": "why"}, {"c": ""}, ["d"])
    shown = "\n".join(lines(Converted(account, False), Path("x.ckpt")))
    assert "Tensors: 3 = 1 converted + 1 left out + 1 unknown" in shown
    assert "left out: b (why)" in shown
    assert "not in the model: c" in shown
    assert "not in the file: d" in shown
    assert "Nothing was written" in shown


@pytest.mark.parametrize(
    ("source", "target"),
    [("no.pth", "a.ckpt"), ("net.py", "a.ckpt"), ("a.pth", "a.txt"), ("a.pth", "b.pth"),
     ("a.pth", "there.ckpt"), ("a.pth", "a.ckpt --shard-size 5")],
)  # fmt: skip
def test_what_cannot_be_converted_is_refused_at_once(
    tmp_path: Path, source: str, target: str
) -> None:
    out = output(tmp_path, MODEL)
    (tmp_path / "a.pth").write_bytes(b"PK")
    (tmp_path / "there.ckpt").write_bytes(b"mine")
    name, *options = target.split()
    before = sorted(tmp_path.iterdir())
    assert convert(tmp_path / source, tmp_path / name, out, *options) == 2
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there.ckpt").read_bytes() == b"mine"


BAD = {
    "more.pth": (1, "new"), "less.pth": (1, "fc.weight"), "hostile.pth": (2, "mkdir"),
    "short.pth": (2, "cannot be converted"), "noise.pth": (2, "cannot be converted"),
    "noise.safetensors": (2, "cannot be converted"), "noise.ckpt": (2, "corrupted"),
    "other.pth": (2, "none of its tensors"), "list.pth": (2, "none of its tensors"),
    "complex.pth": (2, "holds no complex64"),
    "outside.safetensors.index.json": (2, "no file beside the index"),
    "lost.safetensors.index.json": (2, "m-3.safetensors"),
    "wrong.safetensors.index.json": (2, "does not hold fc.weight"),
}  # fmt: skip


@NEEDS
@pytest.mark.slow
def test_a_bad_file_is_refused_with_a_reason_and_nothing_is_left(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = output(tmp_path, MODEL)
    subprocess.run([sys.executable, "-c", SAVE, str(tmp_path)], check=True)
    before = sorted(tmp_path.iterdir())
    for name, (code, why) in BAD.items():
        target = tmp_path / ("made.pth" if name.endswith(".ckpt") else "made.ckpt")
        assert convert(tmp_path / name, target, out) == code, name
        said = "".join(capfd.readouterr())
        assert why in said, (name, said)
        assert code == 1 or str(tmp_path / name) in said, (name, said)
        assert sorted(tmp_path.iterdir()) == before, name
    assert not list(tmp_path.parent.glob("*.ran"))


@NEEDS
@pytest.mark.slow
def test_a_whole_file_goes_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    out = output(tmp_path, MODEL)
    subprocess.run([sys.executable, "-c", SAVE, str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)  # as typed: the workers have folders of their own
    assert convert(Path("whole.pth"), Path("whole.ckpt"), Path(out.name)) == 0
    command = [sys.executable, "-c", LOAD, str(tmp_path / "whole.ckpt")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str({"bn.gamma": "0000c03f000000c0", "fc.weight": "cdcccc3d" * 6})
    base = ("--base", str(tmp_path / "whole.pth"))
    assert convert(tmp_path / "whole.ckpt", tmp_path / "back.safetensors", out, *base) == 0
    index = tmp_path / "sharded.safetensors.index.json"
    assert convert(index, tmp_path / "sharded.ckpt", out) == 0
    assert (tmp_path / "sharded.ckpt").read_bytes()
    assert convert(tmp_path / "sharded.ckpt", tmp_path / "back.pth", out, *base) == 0
    whole = torch.load(tmp_path / "whole.pth", weights_only=True)
    for name in ("back.pth", "back.safetensors"):
        if name.endswith(".pth"):
            back = torch.load(tmp_path / name, weights_only=True)
        else:
            from safetensors.torch import load_file

            back = load_file(tmp_path / name)
        assert back.keys() == whole.keys()
        assert all(torch.equal(back[key], one) for key, one in whole.items())


@NEEDS
@pytest.mark.slow
def test_half_numbers_keep_their_bits_and_a_structure_its_shape(tmp_path: Path) -> None:
    import torch

    out = output(tmp_path, MODEL)
    subprocess.run([sys.executable, "-c", SAVE, str(tmp_path)], check=True)
    assert convert(tmp_path / "half.pth", tmp_path / "half.ckpt", out) == 0
    assert convert(tmp_path / "half.ckpt", tmp_path / "back.pth", out) == 0
    half = torch.load(tmp_path / "half.pth", weights_only=True)["state_dict"]
    back = torch.load(tmp_path / "back.pth", weights_only=True)["state_dict"]
    assert list(back) == ["bn.weight", "fc.weight"]
    for key, one in back.items():
        assert one.dtype is torch.bfloat16
        assert torch.equal(one.view(torch.int16), half["module." + key].view(torch.int16))
    assert convert(tmp_path / "half.pth", tmp_path / "half.safetensors", out) == 0
    options = ("--to", "torch", "--shard-size", "1", "--force")
    assert convert(tmp_path / "half.safetensors", tmp_path / "back.bin", out, *options) == 0
    again = torch.load(tmp_path / "back.bin", weights_only=True)
    assert torch.equal(again["bn.weight"].view(torch.int16), back["bn.weight"].view(torch.int16))
