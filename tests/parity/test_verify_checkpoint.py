"""In: hand-written pairs. Out: checkpoints come back bit by bit, or what does not is named."""

from __future__ import annotations

import importlib.util

import pytest
from parity_pairs import LENET, LENET_MS, write_pair

from migrate.parity.ladder import verify_with
from migrate.parity.request import VerifyRequest
from migrate.parity.session import open_sides
from migrate.parity.weights import found_under
from migrate.parity.worker import Worker
from migrate.records.outcomes import Verdict, Why

pytestmark = [
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
        reason="needs torch and MindSpore",
    ),
    pytest.mark.timeout(600),
]

TORCH = """
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding=1)
        self.fc = nn.Linear(4, 3)
        self.again = nn.Linear(4, 3)
        self.again.weight = self.fc.weight
        self.register_buffer("scale", torch.arange(3.0) + 0.5)
        self.register_buffer("shift", torch.ones(3), persistent=False)

    def forward(self, x):
        x = self.conv(x).mean(2)
        return (self.fc(x) + self.again(x)) * self.scale + self.shift
"""
MINDSPORE = """
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, pad_mode='pad', padding=1, has_bias=True)
        self.fc = nn.Dense(4, 3)
        self.again = nn.Dense(4, 3)
        self.again.weight = self.fc.weight
        self.scale = Parameter(Tensor(np.arange(3, dtype=np.float32) + 0.5), requires_grad=False)
        self.shift = Parameter(ops.ones(3), requires_grad=False)

    def construct(self, x):
        x = self.conv(x).mean(2)
        return (self.fc(x) + self.again(x)) * self.scale + self.shift
"""
LOST = MINDSPORE.replace(
    "Parameter(Tensor(np.arange(3, dtype=np.float32) + 0.5), requires_grad=False)",
    "Tensor(np.arange(3, dtype=np.float32) + 0.5)",
)
BARE = "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
BARE += "        return x * 2\n"
BARE_MS = "from mindspore import nn\n\n\nclass Net(nn.Cell):\n    def construct(self, x):\n"
BARE_MS += "        return x * 2\n"


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    pair = open_sides(VerifyRequest(folder, folder), folder, 0)
    yield pair
    pair.stop()


@pytest.fixture
def verified(sides, tmp_path):
    """The result of one pair in PyNative mode."""

    def run(torch, mindspore, **more):
        record = write_pair(tmp_path, torch, mindspore)
        asked = {"timeout": 300.0, "modes": ("pynative",), "gradients": False, **more}
        request = VerifyRequest(record, record.parent, **asked)
        (model,) = verify_with((sides,), request, lambda line: None).models
        return model

    return run


def rung(model, name):
    return next(rung for rung in model.rungs if rung.name == name)


def test_every_saved_tensor_comes_back(verified):
    model = verified(TORCH, MINDSPORE, inputs=("2x2x5",))
    found = rung(model, "checkpoint")
    assert (model.verdict, found.verdict, found.faults) == (Verdict.PASS, Verdict.PASS, {})
    # conv 24 + 4, fc 12 + 3, the shared 12 once more by its other name, again.bias 3, scale 3
    assert found.elements == 61
    assert model.weight_shapes["conv.weight"] == (4, 2, 3)
    assert "shift" not in model.weight_names, "torch does not save it"
    owners = {check.torch_path for check in model.checks if check.rung == "checkpoint"}
    assert owners == {"", "conv", "fc", "again"}
    spread = next(c.spread for c in model.checks if c.rung == "forward eval" and not c.torch_path)
    assert sum(spread.bins) == 6
    assert spread.torch.mean == pytest.approx(spread.mindspore.mean, rel=1e-4)


def test_a_buffer_that_mindspore_does_not_save_is_named(verified):
    model = verified(TORCH, LOST, inputs=("2x2x5",))
    found = rung(model, "checkpoint")
    assert found.verdict is Verdict.DIVERGED
    assert list(found.faults) == ["scale"]
    assert "scale" in found.detail


@pytest.mark.parametrize("command", ["save_state", "read_file", "reload", "write_file"])
def test_a_worker_killed_on_the_way_starts_the_rung_again(verified, monkeypatch, command):
    call, killed = Worker.call, []

    def killing(worker, asked, *rest):
        if asked == command and not killed:
            killed.append(asked)
            worker.process.kill()
        return call(worker, asked, *rest)

    monkeypatch.setattr(Worker, "call", killing)
    model = verified(TORCH, MINDSPORE, inputs=("2x2x5",))
    assert killed == [command]
    assert (model.verdict, rung(model, "checkpoint").elements) == (Verdict.PASS, 61)


def test_a_model_without_tensors_has_nothing_to_send(verified):
    model = verified(BARE, BARE_MS, inputs=("2x3",))
    found = rung(model, "checkpoint")
    assert (found.verdict, found.detail) == (Verdict.NOT_RUN, Why.NO_TENSOR)
    assert model.verdict is Verdict.PASS


ADAM = "torch.optim.AdamW(params, lr=0.015625)"
MINE = "mindspore.experimental.optim.AdamW(params, lr=0.015625{})"


@pytest.mark.parametrize(
    ("torch", "mindspore", "expected"),
    [
        (ADAM, MINE.format(""), "PASS"),
        # a first step of Adam goes by the sign alone: only the state tells that betas differ
        (ADAM, MINE.format(", betas=(0.5, 0.999)"), "DIVERGED"),
        ("torch.optim.RMSprop(params, lr=0.015625)",
         "mindspore.experimental.optim.RMSprop(params, lr=0.015625)", "PASS"),
        ("torch.optim.SGD(params, lr=0.015625)", "mindspore.nn.SGD(params, 0.015625)", "NOT_RUN"),
    ],
)  # fmt: skip
def test_the_state_of_the_optimizer_after_a_step(verified, torch, mindspore, expected):
    model = verified(LENET, LENET_MS, steps=1, optimizer=(torch, mindspore))
    found = rung(model, "optimizer state")
    assert found.verdict.value == expected, found.detail
    assert rung(model, "optimizer step").verdict is Verdict.PASS
    if expected == "NOT_RUN":
        assert (found.detail, model.verdict) == (Why.NO_STATE, Verdict.PASS)
    else:
        weights = rung(model, "optimizer step").elements
        assert found.elements == weights * (2 if "Adam" in torch else 1)
    if expected == "DIVERGED":
        assert "exp_avg of conv1.weight" in found.detail or "exp_avg of conv1.bias" in found.detail
        assert model.guilty.rung == "optimizer state"


@pytest.mark.parametrize(
    ("changed", "verdict"), [("", "PASS"), (", betas=(0.5, 0.999)", "DIVERGED")]
)
def test_the_state_after_all_steps_counts_on_the_last_rung(verified, changed, verdict):
    model = verified(LENET, LENET_MS, steps=3, optimizer=(ADAM, MINE.format(changed)))
    weights = rung(model, "optimizer step").elements
    assert rung(model, "steps").elements == 2 + weights + 2 * weights  # losses, moves, two moments
    last = [check for check in model.checks if check.rung == "steps"]
    assert any("after 3 steps: exp_avg" in check.detail for check in last) is bool(changed)
    assert rung(model, "optimizer state").verdict.value == verdict
    assert model.verdict.value == verdict


def test_losses_of_both_sides_are_kept(verified):
    model = verified(LENET, LENET_MS, steps=3)
    curve = rung(model, "loss").curve
    assert len(curve.torch) == len(curve.mindspore) == len(curve.reference) == 3
    assert len(set(curve.torch)) == 3, "it trains"
    assert curve.mindspore == pytest.approx(curve.reference, rel=1e-4)
    assert rung(model, "steps").curve is None
    assert model.options == ("--steps", "3", "--mode", "pynative")


def test_state_is_looked_for_under_known_names_only():
    held = ("accum.fc.weight", "moments.fc.bias", "strange.conv.weight")
    assert found_under("momentum_buffer", "fc.weight", held) == "accum.fc.weight"
    assert found_under("momentum_buffer", "fc.bias", held) == "moments.fc.bias"
    assert found_under("momentum_buffer", "conv.weight", held) == ""
    assert found_under("strange", "conv.weight", held) == "strange.conv.weight"


TINY = "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
TINY += "        return x / (x.norm(dim=-1, keepdim=True) + 1e-6)\n"
TINY_MS = "from mindspore import nn, ops\n\n\nclass Net(nn.Cell):\n    def construct(self, x):\n"
TINY_MS += "        return x / (ops.norm(x, dim=-1, keepdim=True) + {})\n"


@pytest.mark.parametrize(
    ("eps", "magnitudes", "verdict"),
    [("1e-8", (), "PASS"), ("1e-8", (1e-3,), "DIVERGED"), ("1e-6", (1e-3, 10.0), "PASS")],
)
def test_inputs_of_another_size_show_what_drowns_near_one(verified, eps, magnitudes, verdict):
    model = verified(TINY, TINY_MS.format(eps), inputs=("3x16",), magnitudes=magnitudes)
    assert model.verdict.value == verdict
    assert [r.verdict.value for r in model.rungs if r.name == "magnitudes"] == (
        [verdict] if magnitudes else []
    )
    assert rung(model, "forward eval").verdict is Verdict.PASS
    assert (model.guilty.rung if model.guilty else "") == "magnitudes" * (verdict == "DIVERGED")
    if magnitudes:
        assert "--magnitude 0.001" in " ".join(model.options)
