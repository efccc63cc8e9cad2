"""In: nothing. Out: models for graph mode, one for each construct: records that it makes."""

# ruff: noqa
# It is the point that they are written so.

from collections import namedtuple
from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Tuple
from inspect import isfunction
import torch
from torch import Tensor, nn


@dataclass
class Output:
    """What it gives."""

    logits: Tensor = None
    hidden: Optional[Tuple[Tensor]] = None


@dataclass
class Step:
    value: Tensor
    weight: float


class Images:
    def __init__(self, tensors, sizes: List[int] = None):
        self.tensors = tensors
        self.sizes = sizes


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class Encoder(Base):
    def forward(self, x, keep: bool = False):
        h = self.a(x)
        logits = self.b(h)
        return Output(logits, hidden=(h,) if keep else None)


class RecordInside(Base):
    def __init__(self):
        super().__init__()
        self.inner = Encoder()

    def forward(self, x):
        out = self.inner(x, True)
        more = self.inner(x)
        if more.hidden is not None:
            return x
        return out.logits * 2 + out.hidden[0]


class RecordReturned(Base):
    def forward(self, x):
        return Step(value=self.a(x), weight=x * 2)


class RecordList(Base):
    def forward(self, x):
        steps = []
        for i in range(3):
            x = self.a(x)
            steps.append(Step(value=x, weight=float(i)))
        return sum([s.value * s.weight for s in steps])


class HolderPassed(Base):
    def scaled(self, images: Images):
        return images.tensors * images.sizes[0]

    def forward(self, x):
        return self.b(self.scaled(Images(self.a(x), [2])))


class PairMade(Base):
    def split(self, x):
        return Pair(right=self.a(x), left=x * 2)

    def forward(self, x):
        p = self.split(x)
        left, right = p
        return p.left * p.right + left - right


class FunctionDefault(Base):
    def default(self, v, d):
        return v if v is not None else (d() if isfunction(d) else d)

    def forward(self, x, y=None):
        return self.a(self.default(y, x)) + self.default(None, lambda: 1)


Sides = namedtuple("Sides", "left right")


class NamedMade(Base):
    def forward(self, x):
        layers = namedtuple("Layers", ["first", "second"])
        sides = Sides(right=self.a(x), left=x)
        found = layers(sides[0], self.b(sides[1]))
        return found[0] * found[1]
