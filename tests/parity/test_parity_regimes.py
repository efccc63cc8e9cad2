"""Pieces of operators that the inputs miss are reached by others, or listed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from parity_pairs import write_pair

from migrate.parity.hand.port import Pair, verify_pair
from migrate.parity.ladder import verify_with
from migrate.parity.request import Draw, VerifyRequest, parse_address
from migrate.parity.session import Sides, opened_sides
from migrate.records.outcomes import Verdict, Why
from migrate.records.result import PairResult, Rung

TORCH = '''"""In: nothing. Out: models."""
import torch
import torch.nn.functional as F
from torch import nn

class Dense(nn.Module):
    def __init__(self, act=None):
        super().__init__()
        self.fc = nn.Linear(6, 8)
        self.act = act or nn.ReLU6()
    def forward(self, x):
        return self.act(self.fc(x))

class Called(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 8)
    def forward(self, x):
        return torch.clamp(self.fc(x), -4.0, 9.0).sum(-1)

class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.act = nn.ReLU6()
    def forward(self, x):
        return self.act(self.norm(x))

class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 8, padding_idx=5)
    def forward(self, ids):
        hidden = self.emb(ids)
        return hidden.masked_fill((ids == 5).unsqueeze(-1), 0.0).sum(1)

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 8, padding_idx=5)
    def forward(self, ids):
        return self.emb(ids).sum(1)

class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.pool = nn.MaxPool2d(2, ceil_mode=True)
    def forward(self, x):
        return self.pool(self.conv(x))

class Smooth(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2

class Unit(nn.Module):
    def forward(self, x, mask=None):
        return F.normalize(x, dim=-1)
'''
PORT = '''"""In: nothing. Out: their ports; arguments make mistakes."""
import mindspore as ms
from mindspore import nn, ops

class Dense(nn.Cell):
    def __init__(self, act=None):
        super().__init__()
        self.fc = nn.Dense(6, 8)
        self.act = act or nn.ReLU6()
    def construct(self, x):
        return self.act(self.fc(x))

class Cut(nn.Cell):
    def __init__(self, top=6.0):
        super().__init__()
        self.dense = nn.Dense(6, 8)
        self.relu = nn.ReLU()
        self.top = top
    def construct(self, x):
        return ops.clamp(self.relu(self.dense(x)), max=self.top)

class Called(nn.Cell):
    def __init__(self, low=-4.0, high=9.0):
        super().__init__()
        self.dense = nn.Dense(6, 8)
        self.low, self.high = low, high
    def construct(self, x):
        return ops.clamp(self.dense(x), self.low, self.high).sum(-1)

class Normed(nn.Cell):
    def __init__(self, act=None):
        super().__init__()
        self.norm = nn.LayerNorm((8,), epsilon=1e-5)
        self.act = act or nn.ReLU6()
    def construct(self, x):
        return self.act(self.norm(x))

class Padded(nn.Cell):
    def __init__(self, pad=5):
        super().__init__()
        self.emb = nn.Embedding(50, 8)
        self.pad = pad
    def construct(self, ids):
        hidden = self.emb(ids)
        return hidden.masked_fill((ids == self.pad).unsqueeze(-1), 0.0).sum(1)

class Plain(nn.Cell):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 8)
    def construct(self, ids):
        return self.emb(ids).sum(1)

class Pooled(nn.Cell):
    def __init__(self, ceil_mode=True, pad_mode="pad"):
        super().__init__()
        padding = 1 if pad_mode == "pad" else 0
        self.conv = nn.Conv2d(2, 4, 3, 2, pad_mode=pad_mode, padding=padding, has_bias=True)
        self.pool = nn.MaxPool2d(2, 2, pad_mode="pad", ceil_mode=ceil_mode)
    def construct(self, x):
        return self.pool(self.conv(x))

class Smooth(nn.Cell):
    def construct(self, x):
        return ops.tanh(x) * 2

class Unit(nn.Cell):
    def construct(self, x, mask=None):
        return x / ops.clamp(ops.norm(x, dim=-1, keepdim=True), min=1e-12)
'''


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with opened_sides(VerifyRequest(Path(), Path())) as (opened,):
        yield opened


@pytest.fixture
def verified(sides: Sides, tmp_path: Path):
    (tmp_path / "regimes_torch.py").write_text(TORCH, encoding="utf-8")
    (tmp_path / "regimes_ms.py").write_text(PORT, encoding="utf-8")

    def run(torch: str, build: str, text: str) -> PairResult:
        addresses = parse_address(f"regimes_torch:{torch}"), parse_address(f"regimes_ms:{build}")
        request = VerifyRequest(Path(), Path(), inputs=(text,), modes=("pynative",))
        return verify_pair(sides, Pair(*addresses, (str(tmp_path),)), request, lambda _: None)[0]

    return run


def regimes(result: PairResult) -> Rung:
    return next(rung for rung in result.rungs if rung.name == "regimes")


@pytest.mark.parametrize(
    ("torch", "build", "text"),
    [
        ("Dense", "Dense", "4x6"), ("Dense", "Cut", "4x6"),
        ("Dense(nn.ReLU())", "Dense(nn.ReLU())", "4x6"), ("Called", "Called", "4x6"),
        ("Dense(nn.Hardswish())", "Dense(nn.HSwish())", "4x6"), ("Normed", "Normed", "4x8"),
        ("Padded", "Padded", "2x5:int64<50"), ("Pooled", "Pooled", "2x2x16x16"),
    ],
)  # fmt: skip
def test_a_right_port_is_right_on_every_piece(verified, torch, build, text):
    result = verified(torch, build, text)
    found = regimes(result)
    assert result.verdict is Verdict.PASS, result.model_dump_json(indent=1, include={"rungs"})
    assert not found.unreached
    assert found.elements > 0


@pytest.mark.parametrize(
    ("torch", "build", "text", "said"),
    [
        ("Dense", "Dense(nn.ReLU())", "4x6", "inputs times"),
        ("Dense(nn.ReLU())", "Dense", "4x6", "inputs times"),
        ("Dense(nn.Hardtanh(-2.0, 7.0))", "Dense(nn.Hardtanh(-2.0, 5.0))", "4x6", "inputs times"),
        ("Called", "Called(high=12.0)", "4x6", "inputs times"),
        ("Dense", "Cut(top=7.0)", "4x6", "inputs times"),
        ("Normed", "Normed(nn.ReLU())", "4x8", "inputs times"),  # no input of the model gets there
        ("Plain", "Plain", "2x5:int64<50", "inputs that end on 5"),
        ("Pooled", "Pooled(ceil_mode=False)", "2x2x16x16", "by one"),
        ("Pooled", "Pooled(pad_mode='same')", "2x2x15x15", "by one"),
    ],
)
def test_a_wrong_piece_is_reached_and_fails(verified, torch, build, text, said):
    result = verified(torch, build, text)
    before = [rung for rung in result.rungs if rung.name != "regimes"]
    assert all(rung.verdict is Verdict.PASS for rung in before if rung.why is None), before
    assert result.guilty is not None and result.guilty.rung == "regimes"
    assert said in result.guilty.cause


def test_a_mask_of_another_token_shows_where_that_token_comes(verified):
    result = verified("Padded", "Padded(pad=1)", "2x5:int64<50")
    assert result.guilty is not None and "inputs that end on 5" in result.guilty.cause


def test_a_token_that_the_description_leaves_out_is_no_input(verified):
    result = verified("Plain", "Plain", "2x5:6<=int64<50")
    assert result.verdict is Verdict.PASS
    assert regimes(result).unreached == ("emb: embedding, row 5 (padding_idx)",)


def test_what_no_input_reaches_is_listed(verified):
    result = verified("Unit", "Unit", "4x6")
    found = regimes(result)
    assert result.verdict is Verdict.PASS
    assert found.why is Why.UNREACHED
    assert found.unreached == (
        "the whole model: clamp_min, below 1e-12", "the whole model: mask is never given",
    )  # fmt: skip
    smooth = regimes(verified("Smooth", "Smooth", "4x6"))
    assert smooth.why is Why.REACHED and not smooth.unreached


def test_converted_code_is_judged_the_same(sides, tmp_path):
    torch = TORCH.replace("class Dense", "class Net", 1)
    wrong = PORT.replace("class Dense", "class Net", 1).replace("ReLU6()", "ReLU()", 1)
    record = write_pair(tmp_path, torch, wrong)
    request = VerifyRequest(record, record.parent, builds=("Net()",), inputs=("4x6",),
                            modes=("pynative",))  # fmt: skip
    (model,) = verify_with((sides,), request, lambda line: None).models
    assert model.guilty is not None
    assert (model.guilty.rung, model.guilty.mindspore) == ("regimes", "act (ReLU)")


def test_draws_say_how_they_differ():
    assert Draw().is_plain and Draw(root_only=True).is_plain
    assert Draw(factor=-4.0).text == "inputs times -4"
    assert Draw(put=5, longer=1).text == "inputs that end on 5, inputs longer by one"
    assert Draw(factor=2.0, root_only=True).suffix != Draw(factor=2.0).suffix
