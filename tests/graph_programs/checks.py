"""In: nothing. Out: models for graph mode, one for each construct: all, any, ^ of bools."""

# ruff: noqa
# It is the point that they are written so.

from functools import partial

import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)
        self.factor = 2
        self.conditional = True


def divisible_by(number, by):
    return (number % by) == 0


def exists(value):
    return value is not None


def xnor(x, y):
    return not (x ^ y)


class AllOfSizes(Two):
    def forward(self, x):
        assert all([divisible_by(d, self.factor) for d in x.shape[-2:]]), f"{x.shape[-2:]} by 2"
        return self.a(x)


class AllFails(Two):
    def forward(self, x):
        if all(d == 6 for d in x.shape):
            return self.a(x)
        return self.b(x) * 2


class AnyOfPairs(Two):
    def forward(self, x):
        same = any(a == b for a, b in zip(x.shape, (3, 6)) if a > 1)
        return self.a(x) if same else self.b(x)


class AnyFails(Two):
    def forward(self, x):
        return self.a(x) * (1 + any(d > 6 or d == 0 for d in x.shape)) + self.b(x)


class AllHere(Two):
    def forward(self, x, y=None):
        if not all(t is not None for t in (x, y)):
            return self.a(x)
        return self.b(y)


class AllNested(Two):
    def forward(self, x):
        if all(any(d % n == 0 for n in (2, 5)) for d in x.shape) and x.ndim == 2:
            return self.a(x)
        return self.b(x)


class Truths(Two):
    def forward(self, x):
        return self.a(x) if any([d % 2 for d in x.shape]) else self.b(x)


class AllOfTensors(Two):
    def forward(self, x):
        if all((t.abs() < 100).all() for t in (x, x * 2)):
            return self.a(x)
        return self.b(x)


class AllConstant(Two):
    def forward(self, x):
        return self.a(x) if all([self.conditional, self.factor]) else self.b(x)


class AllWritten(Two):
    def forward(self, x):
        return self.a(x) if all([self.conditional, x.shape[0] == 2]) else self.b(x)


class Xnor(Two):
    def forward(self, x, label=None):
        assert not xnor(exists(label), self.conditional)
        return self.a(x)


class XorOfBools(Two):
    def forward(self, x, label=None):
        y = self.a(x) if (label is None) ^ self.conditional else self.b(x)
        return y * (1 + (self.conditional ^ False))


class XorOfNumbers(Two):
    def forward(self, x):
        return self.a(x) * (x.shape[0] ^ 3)


class MapsPartial(Two):
    def forward(self, x):
        y, z = self.a(x), self.b(x)
        k, v = map(partial(torch.cat, dim=-1), ((y, x), (z, y)))
        return k * v


class MayBeABool(Two):
    def __init__(self, **settings):
        super().__init__()
        self.cross = settings.get("cross", False)

    def forward(self, x, y=None):
        x = self.a(x) if self.cross ^ exists(y) else self.b(x)
        return x * 3 if self.cross ^ (y is None) else x
