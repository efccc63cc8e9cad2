"""In: a torch checkpoint of a verified model. Out: that MindSpore loads the same numbers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from migrate.parity.checkpoint import convert_checkpoint, plan, strip_prefix
from migrate.parity.request import VerifyError
from migrate.result import ModelResult

NAMES = {"bn.weight": "bn.gamma", "bn.steps": "", "head.weight": "emb.table", "emb.w": "emb.table"}
MODEL = ModelResult(
    name="Net", source="net.py", build="Net()", inputs=(), verdict="PASS", weight_names=NAMES,
    weight_layouts={"bn.weight": "unsqueeze(1)"},
)  # fmt: skip


def test_a_plan_accounts_for_every_key():
    planned = plan({"bn.weight": "bn.weight", "bn.steps": "bn.steps", "x": "x"}, MODEL)
    assert planned.pairs == (("bn.weight", "bn.gamma", "unsqueeze(1)"),)
    assert planned.result.dropped == ("bn.steps",)
    assert planned.result.unknown == ("x",)
    assert planned.result.absent == ("head.weight", "emb.w")


def test_tied_tensors_are_written_once():
    planned = plan({"head.weight": "head.weight", "emb.w": "emb.w"}, MODEL)
    assert [name for _, name, _ in planned.pairs] == ["emb.table"]


def test_the_prefix_of_data_parallel_is_left_out_only_when_all_keys_have_it():
    assert strip_prefix(["module.a", "module.b"]) == {"a": "module.a", "b": "module.b"}
    assert strip_prefix(["module.a", "b"]) == {"module.a": "module.a", "b": "b"}


def test_a_model_that_was_not_verified_is_refused(tmp_path):
    blank = MODEL.model_copy(update={"weight_names": {}})
    with pytest.raises(VerifyError, match="run torch2ms verify first"):
        convert_checkpoint(tmp_path / "a.pth", tmp_path / "a.ckpt", blank)


SAVE = """
import sys, torch
torch.manual_seed(0)
torch.save({"state_dict": {"module.bn.weight": torch.randn(4), "module.emb.w": torch.randn(3, 2),
                           "module.bn.steps": torch.tensor(7)}}, sys.argv[1])
print(float(torch.load(sys.argv[1])["state_dict"]["module.emb.w"].double().sum()))
"""
LOAD = """
import sys, mindspore as ms
found = ms.load_checkpoint(sys.argv[1])
print(sorted((name, tuple(p.shape)) for name, p in found.items()))
print(float(found["emb.table"].asnumpy().astype("float64").sum()))
"""


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
    reason="needs torch and MindSpore",
)
@pytest.mark.slow
def test_a_checkpoint_goes_from_torch_to_mindspore(tmp_path):
    source, target = tmp_path / "net.pth", tmp_path / "net.ckpt"

    def run(code, path):
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout.strip().splitlines()

    total = run(SAVE, source)
    result = convert_checkpoint(source, target, MODEL)
    assert result.copied == ("bn.weight", "emb.w")
    assert result.absent == ()
    shapes, loaded = run(LOAD, target)
    assert shapes == "[('bn.gamma', (4, 1)), ('emb.table', (3, 2))]"
    assert float(loaded) == float(total[0])
    with pytest.raises(VerifyError, match="none of its tensors"):
        convert_checkpoint(source, target, MODEL.model_copy(update={"weight_names": {"y": "y"}}))
    (tmp_path / "bad.pth").write_bytes(b"not a checkpoint")
    with pytest.raises(VerifyError, match=r"torch\.save"):
        convert_checkpoint(tmp_path / "bad.pth", target, MODEL)
