"""In: Tensors behind wrappers, chains, tables of layers, tests. Out: typed where that is proved."""

from __future__ import annotations

from functools import cache

import pytest

from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.workspace.project import convert_text

# with numpy around, std(0) may be that of an array: it is flagged unless a Tensor is proved
HEAD = """import numpy as np
import torch
from torch import nn
import torch.utils.checkpoint

"""
WRAPPER = """def again(function, *args, deep=False):
    return torch.utils.checkpoint.checkpoint(function, *args)

z = again(np.load, "a")
"""
TYPED = {
    "a wrapper gives what it calls": WRAPPER + "y = again(nn.ReLU(), z).std(0)\n",
    "by keyword": "def again(x, f):\n    return f(x)\n\nz = again(1, np.load)\n"
    "y = again(1, f=nn.ReLU()).std(0)\n",
    "what a chain gives is asked for permute": "def f(a):\n    return a.std(0).permute(1, 0)\n",
    "classes of a table": """LAYERS = dict(a=nn.ReLU, b=nn.GELU)

def get(layer):
    assert isinstance(layer, (type, str))
    if isinstance(layer, str):
        layer = LAYERS[layer]
    return layer

def f(x):
    return get("a" if x else nn.ReLU)()(x).std(0)
""",
    "found in a table": """LAYERS = [nn.ReLU, nn.GELU]

def f(layer, x):
    if layer in LAYERS:
        return layer()(x).std(0)
""",
    "more classes than alternatives": "LAYERS = dict("
    + ", ".join(f"k{n}=nn.{c}" for n, c in enumerate(
        ("ReLU", "GELU", "Tanh", "Sigmoid", "ELU", "SELU", "CELU", "Hardtanh", "Mish", "SiLU")
    ))
    + ")\n\ndef f(k, x):\n    return LAYERS[k]()(x).std(0)\n",
    "only Modules have running statistics": """def f(branch, path):
    if path:
        branch = nn.BatchNorm2d(3)
    else:
        branch = np.load(path)(branch)
    return (branch.running_var + 1).std(0)
""",
    "only Modules go into a Sequential": """def f(make, x):
    for layer in nn.Sequential(make(1), make(2)):
        x = layer(x)
    return x.std(0)
""",
    "what its callers get late": """class Inner(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm(3)

    def forward(self, x):
        return self.norm(x)

class Block(nn.Module):
    def __init__(self, norm=nn.LayerNorm, shared=None):
        super().__init__()
        self.inner = Inner(norm) if shared is None else shared

    def up(self, x):
        return self.sized(x)

    def sized(self, x):
        return x.std(0)

    def forward(self, x):
        return self.up(self.inner(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(shared=Inner(nn.LayerNorm))])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
""",
    "a Module that is mapped gets the items, not itself": """class Norm(nn.Module):
    def forward(self, x):
        return x.std(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()

    def forward(self, q, k):
        q, k = map(self.norm, (q, k))
        return q + k
""",
    "a partial's own arguments come first": """from functools import partial

def scaled(by, x):
    return torch.relu(x) * by

def f(x: torch.Tensor, y):
    g = partial(scaled, 2)
    return g(x).std(0)
""",
    "a list of Tensors is still one": """def f(x: torch.Tensor, many):
    y = [x, x] if many else x
    if isinstance(y, (list, tuple)):
        y = y[0]
    return y.std(0)
""",
}  # fmt: skip
UNKNOWN = {
    "a wrapper of something else": WRAPPER + "y = again(np.load, z).std(0)\n",
    "a wrapper of something unknown": WRAPPER + "def f(g):\n    return again(g, z).std(0)\n",
    "it returns another value as well": """def again(function, x):
    if x is None:
        return np.load("x")
    return function(x)

y = again(nn.ReLU(), 1).std(0)
""",
    "it calls something else by that name": """def again(function, x):
    function = np.load("x")
    return function(x)

y = again(nn.ReLU(), 1).std(0)
""",
    "arrays have transpose": "def f(a):\n    return a.std(0).transpose(1, 0)\n",
    "a method of the project": """class A:
    def std(self, dim):
        return torch.ones(3, 4)

def f(a):
    return a.std(0).permute(1, 0)
""",
    "what a partial gets is not its function's first": """from functools import partial

def scaled(x, by):
    return torch.relu(x) * by

def f(x, by):
    g = partial(scaled, x)
    return g(by), by.std(0)
""",
    "a table of other things": """def f(layer, x):
    if layer in [np.load, nn.GELU]:
        return layer(x).std(0)
""",
    "a list takes anything": """def f(make, x):
    for layer in [make(1), make(2)]:
        x = layer(x)
    return x.std(0)
""",
    "a class of the project has running statistics": """class Stats:
    def __init__(self, path):
        self.running_var = np.load(path)

def f(branch):
    return (branch.running_var + 1).std(0)
""",
}


@cache
def rows() -> table.Table:
    return table.load(())


def outcomes(text: str) -> list[Outcome]:
    """What became of the calls of std, whoever they are thought to be of."""
    made = convert_text(HEAD + text, rows())
    return [e.outcome for e in made.entries if e.name.rpartition(".")[2] == "std"]


@pytest.mark.parametrize("text", TYPED.values(), ids=TYPED.keys())
def test_is_typed(text: str) -> None:
    assert outcomes(text) == [Outcome.HELPER]


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_stays_unknown(text: str) -> None:
    """Flagged, asked when it runs, or no Tensor at all: never simply converted."""
    made = convert_text(HEAD + text, rows())
    for entry in (e for e in made.entries if e.name.rpartition(".")[2] == "std"):
        assert entry.outcome is Outcome.FLAGGED or " isinstance(" in made.text
        assert entry.outcome is Outcome.FLAGGED or "whether its receiver is a Tensor" in entry.note
