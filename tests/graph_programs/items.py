"""In: nothing. Out: models for graph mode: items taken one by one, dicts of dicts, partials or not."""

# ruff: noqa
# It is the point that they are written so.

from functools import partial

import torch
from torch import nn


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))


class PopChosen(Layers):
    def forward(self, x, mems=None):
        mems = mems.copy() if mems is not None else [None] * 2 + [x]
        for layer in self.layers:
            m = mems.pop(0) if mems else None
            if m is not None:
                x = x + m
            x = layer(x)
        return x


class PopKept(Layers):
    def forward(self, x):
        kept = []
        for layer in self.layers:
            kept.append(layer(x))
            x = x * 2
        total = x
        for i in range(4):
            one = None if len(kept) == 0 else kept.pop()
            total = total if one is None else total + one * i
        return total


def default(v, d):
    return v if v is not None else d


class NextUnknown(Layers):
    def forward(self, x, given=None):
        rows = iter((None,))
        extra = iter(default(given, ()))
        if x.shape[0] > 1:
            rows = iter(x.unsqueeze(1) * 2)
        for layer in self.layers:
            x = self.one(x, row=next(rows, None), more=next(extra, None)) + layer(x)
        return x

    def one(self, x, row=None, more=None):
        if row is not None:
            x = x + row
        return x if more is None else x + more


class DictUnpacked(Layers):
    def forward(self, x, **kwargs):
        kwargs = dict(**kwargs, a=x * 2, b=None)
        first = {"c": x, **kwargs}
        second = first | {"b": self.layers[0](x)}
        return self.total(**second) + first["a"]

    def total(self, a, b, c):
        return a + b * c


def scaled(x, by=1.0):
    return x * by


class PartialOrNot(Layers):
    def __init__(self, half=True, other=None):
        super().__init__()
        if other is not None:
            self.act = other
        elif half:
            fn = torch.tanh if other is None else other
            self.act = partial(scaled, by=0.5) if half else fn
        else:
            self.act = torch.tanh
        self.plain = torch.tanh if half else partial(scaled, by=0.5)

    def forward(self, x):
        return self.act(self.layers[0](x)) + self.plain(x)


class Moved(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.eps = torch.FloatTensor([1e-8])
        self.device = "cpu"

    def forward(self, x):
        self.eps = self.eps.to(self.device)
        self.eps = self.eps.to(x.device)
        return self.layer(x) + self.eps


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(6, 6)

    def prepare(self, x):
        return self.scale(x), dict(beta=x)

    def forward(self, x):
        return self.scale(x)


class MethodOfUnknown(nn.Module):
    def __init__(self):
        super().__init__()
        self.pairs = nn.ModuleList([])
        for _ in range(2):
            self.pairs.append(nn.ModuleList([Branch(), nn.Linear(6, 6)]))

    def forward(self, x):
        for branch, layer in self.pairs:
            y, kept = branch.prepare(x)
            x = layer(y) + kept["beta"]
        return x
