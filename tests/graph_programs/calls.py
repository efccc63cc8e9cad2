"""In: nothing. Out: models for graph mode, one for each construct: calls of Python's own."""

# ruff: noqa
# It is the point that they are written so.

import torch
from collections import OrderedDict
from functools import partial, reduce
import torch.nn.functional as F
from torch import nn


def default(v, d):
    return v if v is not None else (d() if callable(d) else d)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])


class SetDefault(Base):
    def run(self, x, **kwargs):
        kwargs.setdefault("a", 3)
        return x * kwargs["a"]

    def forward(self, x):
        return self.run(self.layers[0](x)) + self.run(x, a=4)


class CallableAsked(Base):
    def forward(self, x, y=None):
        y = default(y, x)
        return self.layers[0](y) + default(None, lambda: x)


class ReduceLayers(Base):
    def forward(self, x):
        z = reduce(lambda a, l: l(a), self.layers, x)
        return z + reduce(torch.add, [l(x) for l in self.layers])


class OrderedPairs(Base):
    def forward(self, x):
        d = OrderedDict([("a", x), ("b", self.layers[0](x))])
        e = OrderedDict(zip(["a", "b"], [x, self.layers[1](x)]))
        return d["a"] * d["b"] + e["b"] - list(e.values())[0]


class NextOf(Base):
    def forward(self, x):
        it = iter([x, x * 2])
        for layer in self.layers:
            x = layer(x) + default(next(it, None), 1)
        return x


class NextWithout(Base):
    def forward(self, x):
        it = iter([layer for layer in self.layers])
        x = next(it)(x)
        x = torch.relu(next(it)(x))
        return x


class PartialStored(Base):
    def __init__(self):
        super().__init__()
        self.act = partial(F.leaky_relu, negative_slope=0.1)
        self.fuse = partial(mixed, 2.0)

    def forward(self, x):
        return self.fuse(self.act(self.layers[0](x)), by=3)


def mixed(weight, x, by=1):
    return x * weight * by


class Spelled(Base):
    def __init__(self, spec: str = "relu, tanh"):
        super().__init__()
        self.spec = spec

    def forward(self, x):
        for part in self.spec.split(","):
            x = torch.relu(x) if part.strip() == "relu" else self.layers[0](x)
        return x * len(self.spec) if "-".join(["a", "b"]) == "a-b" else x


class ByKey(Base):
    def forward(self, x):
        y = self.layers[0](x)[:, :2]
        big = max([y, x], key=lambda t: t.shape[1])
        small = min(x, y, key=lambda t: t.shape[1])
        first = sorted([x, y], key=lambda t: t.shape[1])[0]
        return big * small.sum() + first.mean()
