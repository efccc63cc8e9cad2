"""In: nothing. Out: models for graph mode, one for each construct: types that are asked for."""

# ruff: noqa
# It is the point that they are written so.

from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])


class TypeAsked(Base):
    def fuse(self, xs):
        if type(xs) not in (tuple, list):
            xs = [xs]
        if type(xs) == list and not type(xs) in (tuple, str):
            xs = xs + xs
        return sum(self.layers[0](x) for x in xs)

    def forward(self, x):
        return self.fuse(x) + self.fuse((x, x * 2))
