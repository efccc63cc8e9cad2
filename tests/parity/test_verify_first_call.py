"""In: guilty Cells. Out: the first call that differs on both sides, and a program that shows it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from parity_pairs import write_pair

from migrate.parity.diagnose import parting, relation
from migrate.parity.exchange import ArrayStore
from migrate.parity.inner_calls import OBSERVER, watched
from migrate.parity.ladder import verify_with
from migrate.parity.request import VerifyRequest
from migrate.parity.session import open_sides

WITH_FRAMEWORKS = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
    reason="needs torch and MindSpore",
)
DRAW = np.random.RandomState(0).standard_normal

TORCH = """\
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 6)

    def forward(self, x):
        y = F.gelu(self.fc(x)) + 1.0
        v = y.var(dim=1, keepdim=True)
        return (y - y.mean(dim=1, keepdim=True)) / torch.sqrt(v + 1e-5)
"""
MINDSPORE = """\
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(8, 6)

    def construct(self, x):
        y = ops.gelu(self.fc(x), approximate='none') + 1.0
        v = y.var(axis=1, ddof=1, keepdims=True)
        return (y - y.mean(axis=1, keep_dims=True)) / ops.sqrt(v + 1e-5)
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    pair = open_sides(VerifyRequest(folder, folder), folder, 0)
    yield pair
    pair.stop()


@pytest.fixture
def guilty(sides, tmp_path):
    def run(mindspore, torch=TORCH, shape="4x8"):
        record = write_pair(tmp_path, torch, mindspore)
        request = VerifyRequest(
            record, record.parent, inputs=(shape,), modes=("pynative",), gradients=False,
            reproductions=tmp_path / "shown",
        )  # fmt: skip
        (model,) = verify_with((sides,), request, lambda line: None).models
        return model.guilty

    return run


@WITH_FRAMEWORKS
def test_a_right_cell_has_no_first_call_and_no_program(guilty, tmp_path):
    assert guilty(MINDSPORE) is None
    assert not (tmp_path / "shown").exists()


@WITH_FRAMEWORKS
@pytest.mark.parametrize(
    ("right", "wrong", "torch", "cause"),
    [
        ("ddof=1", "ddof=0", "net.py:13: y.var(dim=1, keepdim=True)",
         "without Bessel's correction (ddof) over 6 values"),
        ("'none'", "'tanh'", "net.py:12: F.gelu(self.fc(x))",
         "it passes with ops.gelu(self.fc(x), approximate='none')"),
        ("v + 1e-5", "v + 1e-2", "net.py:14: v + 1e-5", "torch's plus a constant"),
        ("y.mean(axis=1", "y.max(axis=1", "net.py:14: y.mean(dim=1, keepdim=True)", ""),
        ("(y - y.mean", "(y + y.mean", "net.py:14: y - y.mean(dim=1, keepdim=True)", ""),
    ],
)  # fmt: skip
def test_the_first_wrong_call_is_named_on_both_sides(guilty, right, wrong, torch, cause):
    text = MINDSPORE.replace(right, wrong).replace(
        "y.max(axis=1, keep_dims", "y.max(axis=1, keepdims"
    )
    found = guilty(text)
    assert found.torch_call == torch
    line, _, call = found.mindspore_call.partition(": ")
    assert wrong.strip("(") in call
    assert text.splitlines()[int(line.rpartition(":")[2]) - 1].count(call) == 1
    assert cause in found.cause


@WITH_FRAMEWORKS
@pytest.mark.parametrize(
    ("right", "wrong", "cure"),
    [
        ("ddof=1", "ddof=0", "it passes with y.var(axis=1, ddof=1, keepdims=True)"),
        ("v + 1e-5", "v + 1e-2", "it passes with v + 1e-05"),
        ("mean(axis=1", "mean(axis=0", "it passes with y.mean(axis=1, keep_dims=True)"),
        ("self.fc(x)", "(self.fc(x) + ops.sin(x[:, :6]))", ""),
    ],
)
def test_the_change_that_cures_is_named(guilty, right, wrong, cure):
    cause = guilty(MINDSPORE.replace(right, wrong)).cause
    assert cure in cause
    assert ("it passes with" in cause) == bool(cure)


FROZEN = MINDSPORE.replace(
    "nn.Dense(8, 6)", "nn.Dense(8, 6)\n        self.fc.weight.requires_grad = False"
)


@WITH_FRAMEWORKS
@pytest.mark.parametrize(
    ("mindspore", "why"),
    [
        (FROZEN, "fc.weight: torch trains it, in MindSpore it has requires_grad=False"),
        (MINDSPORE.replace("(8, 6)", "(8, 6, has_bias=False)"), "fc.bias: "),
    ],
)
def test_tensors_that_are_unlike_are_guilty_first(guilty, mindspore, why):
    found = guilty(mindspore)
    assert (found.rung, found.mindspore) == ("parameters", "fc (Dense)")
    assert why in found.cause


TIED = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 32)
        self.head = nn.Linear(32, 40, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.table(x))
"""
TIED_MINDSPORE = """\
from mindspore import nn
from mindspore.common.initializer import Normal


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 32, embedding_table=Normal(1.0))
        self.head = nn.Dense(32, 40, has_bias=False)
        self.head.weight = self.table.embedding_table

    def construct(self, x):
        return self.head(self.table(x))
"""


@WITH_FRAMEWORKS
def test_how_a_tied_weight_starts_is_seen_before_it_is_overwritten(guilty):
    assert guilty(TIED_MINDSPORE, TIED, "2x5:int64<40") is None
    found = guilty(TIED_MINDSPORE.replace("Normal(1.0)", "Normal(0.1)"), TIED, "2x5:int64<40")
    assert found.rung == "initial values"


@WITH_FRAMEWORKS
@pytest.mark.slow
def test_the_program_shows_the_difference_without_torch(guilty, tmp_path):
    found = guilty(MINDSPORE.replace("ddof=1", "ddof=0"))
    program = Path(found.reproduction)
    assert program.parent == tmp_path / "shown"
    text = program.read_text()
    assert text.count("\n") <= 40 and "import torch" not in text
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    error = float(done.stdout.split()[-1])
    assert 0.05 < error < 0.15  # sqrt(6 / 5) - 1


def test_observers_are_taken_out_again_also_after_an_exception(tmp_path, monkeypatch):
    (tmp_path / "seen_code.py").write_text(
        "def double(x):\n    return x * 2\n\n\n"
        "class One:\n    def run(self, x):\n        return -double(x) + 1 / x\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    from seen_code import One  # type: ignore[import-not-found]

    before, seen = One.run.__code__, []
    with watched(tmp_path, One, lambda *row: seen.append(row)):
        assert One().run(2) == -3.5
    assert seen == [
        ("seen_code.py:2: x * 2", 4, "double"), ("seen_code.py:7: double(x)", 4, "run"),
        ("seen_code.py:7: -double(x)", -4, "run"), ("seen_code.py:7: 1 / x", 0.5, "run"),
        ("seen_code.py:7: -double(x) + 1 / x", -3.5, "run"),
    ]  # fmt: skip
    with pytest.raises(ZeroDivisionError), watched(tmp_path, One, lambda *row: None):
        One().run(0)
    assert One.run.__code__ is before
    import builtins

    assert not hasattr(builtins, OBSERVER)


def test_what_lies_outside_the_root_is_not_touched(tmp_path):
    before = Path.joinpath.__code__
    with watched(tmp_path, Path, lambda *row: None):
        assert Path.joinpath.__code__ is before


def rows(store: ArrayStore, *values):
    return [
        {"place": place, "within": within, "key": store.put(value), "shape": list(value.shape)}
        for place, within, value in values
    ]


def test_an_expression_computed_in_another_way_is_not_blamed(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "m").mkdir()
    one, other = ArrayStore(tmp_path / "t"), ArrayStore(tmp_path / "m")
    a, b, c = DRAW((2, 3)), DRAW((2, 2)), DRAW(4)
    torch = rows(one, ("n.py:1: w.t()", "forward", a), ("n.py:1: x @ w.t()", "forward", b),
                 ("n.py:2: f(x)", "forward", c))  # fmt: skip
    mine = rows(other, ("n.py:1: matmul(x, w)", "construct", b), ("n.py:2: f(x)", "construct", c))
    assert parting(torch, mine, one, other, 1e-6) is None
    mine[1] = rows(other, ("n.py:2: g(x)", "construct", c * 3))[0]
    found = parting(torch, mine, one, other, 1e-6)
    assert (found.torch, found.mindspore) == ("n.py:2: f(x)", "n.py:2: g(x)")
    assert found.relation == "torch's times 3"


def test_relations_are_named_only_where_they_hold():
    a = DRAW((4, 4))
    assert relation(a, a[:, ::-1]) == "torch's in the opposite order along axis 1"
    assert relation(a, a.T) == "torch's with its last two axes exchanged"
    assert relation(a[:2], a[:2].T) == "torch's, transposed"
    assert relation(a, a * 0.8, "x.var(1)").endswith("over 5 values")
    assert relation(a, a * 0.8, "x.mean(1)") == "torch's times 0.8"
    assert relation(a, a + 2) == "torch's plus a constant"
    assert relation(a, DRAW((4, 4))) == ""
    assert relation(a[0, :1], a[1, :1]) == ""
