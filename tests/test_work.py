"""In: programs of one kind in several sizes. Out: the work for a line is bounded, and stays so.

Work is counted, not timed: the lines of Python that run, each round of a loop included, which no
other load changes. A walk over every tree, or a question that is asked anew at every place, shows.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable
from functools import cache
from types import FrameType

import pytest

from migrate.engine import plan, rewrite
from migrate.engine.rewrite import Options
from migrate.mapping import table
from migrate.sites.references import Reference
from migrate.sites.scene import Scene
from migrate.syntax.source import read

# One file of a program: a block, a net of such blocks, a builder, a registry, helper functions.
FILE = '''"""Net {n}."""
import math
from functools import partial
from typing import List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from .net_{other} import Block_{other}, scaled_{other}


def scaled_{n}(x: torch.Tensor, size: Tuple[int, int], training: bool = False) -> torch.Tensor:
    """To another size."""
    if x.shape[-2:] == size:
        return x
    keep = 1 - 0.1
    mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
    x = F.interpolate(x, size=size, mode="bilinear", align_corners=False)
    return x * mask if training else x


class Block_{n}(nn.Module):
    def __init__(self, dim: int, hidden: Optional[int] = None, act_layer=nn.GELU, drop=0.0):
        super().__init__()
        hidden = hidden or dim
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.fc1 = nn.Linear(dim, hidden)
        self.act = act_layer()
        self.fc2 = nn.Linear(hidden, dim)
        self.drop = nn.Dropout(drop) if drop > 0.0 else nn.Identity()
        self.gamma = nn.Parameter(torch.ones(dim)) if dim > 3 else None
        self.register_buffer("seen", torch.zeros(1))
        self.last = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x
        x = self.drop(self.act(self.fc1(self.norm(x))))
        x = self.fc2(x).mul_(0.5)
        if self.gamma is not None:
            x = x * self.gamma.reshape(1, 1, -1)
        B, N, C = x.shape
        q, k = x.reshape(B, N, 2, C // 2).permute(2, 0, 1, 3).unbind(0)
        attn = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        parts = [part.mean(dim=(1, 2)) for part in attn.chunk(2, dim=-1)]
        return shortcut + x + torch.stack(parts).sum()


class Net_{n}(nn.Module):
    def __init__(self, depths: List[int] = (2, 2), dim: int = 8, block=Block_{other}, **kwargs):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, dim, 3, padding=1), nn.BatchNorm2d(dim), nn.ReLU())
        self.stages = nn.ModuleList([
            nn.Sequential(*[block(dim, **kwargs) for _ in range(depth)]) for depth in depths
        ])
        self.head = nn.Linear(dim, 10)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Conv2d):
            m.weight.data.normal_(0, math.sqrt(2.0 / m.kernel_size[0]))

    def forward_features(self, x):
        x = scaled_{other}(self.stem(x), (8, 8), self.training)
        x = x.flatten(2).transpose(1, 2)
        for i, stage in enumerate(self.stages):
            x = stage(x)
            if i == 0 and self.training:
                x += torch.rand_like(x)
        return x

    def forward(self, x):
        x = self.forward_features(x).mean(1)
        return self.head(x)


def net_{n}(pretrained: bool = False, **kwargs) -> Net_{n}:
    model = Net_{n}(depths=[1, 2], block=partial(Block_{n}, drop=0.1), **kwargs)
    if pretrained:
        model.load_state_dict(torch.load("net_{n}.pth", map_location="cpu"))
    return model.eval()
'''

# Less than a hundredth more than today (7,602). 3,280 before containers, attributes and calls were
# followed; then 200 for parentheses decided by the expressions that edits really make, and 90 for
# what hooks keep and where gradients come from, and 120 for operators of classes and what unknown
# packages hand back, and 330 for what objects run that are called, made, iterated or computed with,
# and 70 for loops that may have no round, one join for all sites of a name and writes where nothing
# is recorded, and 2,370 for LibCST, which parses and writes what has an edit (a fifth of the time),
# and 100 for entries of dicts by their keys, numbers that are read of weights and kept rates,
# and 150 for exact types of layers, who sees names in a state dict, and losses of several steps,
# and 60 for deciding every write that callers may see, and what an iteration takes of a Tensor.
MOST = 7950


@cache
def rows() -> table.Table:
    return table.load(())


def counted(work: Callable[[], object]) -> int:
    """The lines of Python that run while something works, in threads that it starts as well."""
    lines = 0

    def note(frame: FrameType, event: str, argument: object) -> object:
        nonlocal lines
        lines += event == "line"
        return note

    before = sys.gettrace()
    threading.settrace(note)
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]
    return lines


def for_a_line(files: int) -> float:
    """The lines that run to convert one line of so many files."""
    return for_a_line_of({
        f"net_{n}.py": FILE.format(n=n, other=(n + 1) % files) for n in range(files)
    })  # fmt: skip


def for_a_line_of(texts: dict[str, str]) -> float:
    """The lines that run to convert one line of some files."""
    sources = {path: read(path, text.encode()) for path, text in texts.items()}
    options = Options("portable", "module", "from _h import")

    def convert() -> None:
        built = rewrite.analyse(sources, rows())
        for path in sources:
            rewrite.convert(built, path, options)

    return counted(convert) / sum(text.count("\n") for text in texts.values())


@pytest.fixture(autouse=True, scope="module")
def _rows_are_known() -> None:
    for_a_line(2)  # rows and helpers are read when they are first asked for


def test_the_work_for_a_line_is_bounded() -> None:
    assert 20 < for_a_line(6) < MOST


def test_the_work_for_a_line_does_not_grow_with_the_program() -> None:
    # functions that ask each other are walked in a few rounds, more of them in a larger program
    assert for_a_line(24) < 1.2 * for_a_line(6)


def layered(width: int) -> str:
    """Six layers of functions, each of which calls all of the next layer for what they do."""
    text = "import torch\n\n\ndef f6_0(x: torch.Tensor):\n    x.add_(1)\n    return x\n"
    for layer in range(5, -1, -1):
        called = range(1 if layer == 5 else width)
        calls = "".join(f"    f{layer + 1}_{n}(x)\n" for n in called)
        for n in range(width):
            text += f"\n\ndef f{layer}_{n}(x: torch.Tensor):\n{calls}    return x\n"
    return text


def test_the_work_for_a_line_does_not_grow_with_the_ways_to_a_function() -> None:
    assert for_a_line_of({"f.py": layered(6)}) < 3 * for_a_line_of({"f.py": layered(2)})


def kept(width: int) -> str:
    """An object that keeps many lists, which a star hands over: each may be any attribute."""
    names = [f"a{n}" for n in range(width)]
    listed = ", ".join(names)
    stored = "".join(f"        self.{n} = {n}\n" for n in names)
    made = "".join(f"    {n} = [given]\n" for n in names)
    return (
        f"import torch\n\n\nclass Node:\n    def __init__(self, {listed}):\n{stored}\n\n"
        f"def make(given):\n{made}    one = Node({listed})\n    two = Node(*[{listed}])\n"
        "    two.a0.append(one.a1)\n    return one, two\n"
    )


def test_what_outlives_a_call_is_put_in_once_for_all_arguments() -> None:
    # each is joined with each attribute: 33,000 to 44,000, as sets are ordered; it was 141,000
    assert 20 < for_a_line_of({"f.py": kept(8)}) < 70_000


def test_a_walk_for_every_reference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = plan.everything

    def slow(scene: Scene) -> list[Reference]:
        found = usual(scene)
        for _ in found:
            for _ in ast.walk(scene.source.tree):
                pass
        return found

    monkeypatch.setattr(plan, "everything", slow)
    assert for_a_line(6) > MOST
