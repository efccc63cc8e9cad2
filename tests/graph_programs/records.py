"""In: nothing. Out: models for graph mode, one for each construct: records, isinstance."""

# ruff: noqa
# It is the point that they are written so.

import collections
import enum
from collections import namedtuple
from typing import NamedTuple

import torch
from torch import nn


class Sparse(namedtuple("Sparse", ["name", "size", "dim"])):
    __slots__ = ()

    def __new__(cls, name, size=10, dim=2):
        return super(Sparse, cls).__new__(cls, name, size, dim)

    @property
    def width(self):
        return self.size * self.dim

    def __hash__(self):
        return self.name.__hash__()


class Dense(collections.namedtuple("Dense", "name dim")):
    pass


class Pair(namedtuple("Pair", "left right")):
    pass


class Third(NamedTuple):
    name: str


class Level(int):
    pass


class Mode(str, enum.Enum):
    FAST = "fast"
    SLOW = "slow"


class Colour(enum.Enum):
    RED = 1


def total(items):
    """Not compiled: records are tuples for it."""
    return sum(sum(i[1:]) if isinstance(i, tuple) else i for i in items)


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = [Sparse("a"), Dense("b", 3), Sparse("c", 20)]
        self.scale = total(self.features + [4]) / 10
        self.places = {f: i for i, f in enumerate(self.features)}
        self.one = self.features[0]
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class RecordIsinstance(Features):
    def forward(self, x):
        for f in self.features:
            if isinstance(f, Sparse):
                x = self.a(x) * f.dim
            elif isinstance(f, (Dense, Colour)):
                x = self.b(x)
        return x * self.scale


class RecordFilter(Features):
    def chosen(self, features):
        return list(filter(lambda f: isinstance(f, Sparse), features)) if len(features) else []

    def forward(self, x):
        sizes = [f.width for f in self.chosen(self.features)]
        if not len(sizes) > 0:
            raise ValueError("there are no sparse features")
        return self.a(x) * sum(sizes) + len(sizes)


class RecordComprehension(Features):
    def forward(self, x):
        found = [self.a(x) for f in self.features if isinstance(f, Dense)]
        return torch.cat(found, dim=-1) if len(found) > 0 else self.b(x)


class RecordPlaces(Features):
    def forward(self, x):
        name, size, dim = self.one
        return self.a(x) * size + self.one[2] + dim


class RecordType(Features):
    def forward(self, x):
        for f in self.features:
            if type(f) is Dense:
                x = self.a(x)
        return x


class RecordMade(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.pair = Pair(2, 3)

    def forward(self, x):
        if isinstance(self.pair, Pair):
            pair = Pair(self.pair.right, self.pair.left)
            return self.a(x) * pair.left
        return x


class NamedTupleAsked(Features):
    def __init__(self):
        super().__init__()
        self.third = Third("t")

    def forward(self, x):
        return self.a(x) if isinstance(self.third, Third) else self.b(x)


class IntAsked(Features):
    def __init__(self):
        super().__init__()
        self.level = Level(3)

    def forward(self, x):
        return self.a(x) * self.level if isinstance(self.level, Level) else self.b(x)


class TextEnumAsked(Features):
    def __init__(self):
        super().__init__()
        self.mode = Mode.FAST

    def forward(self, x):
        return self.a(x) if isinstance(self.mode, Mode) else self.b(x)


class TextEnumCompared(Features):
    def __init__(self):
        super().__init__()
        self.mode = Mode.FAST

    def forward(self, x):
        return self.a(x) if self.mode == Mode.FAST else self.b(x)


class EnumAsked(Features):
    def __init__(self):
        super().__init__()
        self.colour = Colour.RED

    def forward(self, x):
        return self.a(x) if isinstance(self.colour, Colour) else self.b(x)
