"""Models that compute with Python's floats, where graph mode has single precision."""

# ruff: noqa
# It is the point that they are written so.

import math

import torch
from torch import nn


class Two(nn.Module):
    def __init__(self, ratio=0.9, step=0.29):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)
        self.ratio = ratio
        self.step = step


class Kept(Two):
    def forward(self, x):
        kept = int(10 * (1 - self.ratio))
        return self.a(x) + kept


class KeptOfShape(Two):
    def forward(self, x):
        n, d = x.shape
        kept = max(int(d * (1 - 2 / 3)), 1)
        return self.a(x)[:, :kept], self.b(x) * math.floor((0.1 + 0.7) * 10)


class InSteps(Two):
    def forward(self, x):
        a = self.ratio
        b = 1 - a
        c = b * 10
        return self.a(x) * (2 + int(c))


class ComparedFloats(Two):
    def forward(self, x):
        if (1 - self.ratio) * 10 < 1:
            return self.a(x)
        return self.b(x) if x.shape[1] * 0.1 == 0.6 else x


class Remainder(Two):
    def forward(self, x):
        return self.a(x) + 1 % 0.1 + 0.3 // 0.1


def kept(n, ratio):
    return int(5 * n * (1 - ratio))


class KeptElsewhere(Two):
    def forward(self, x):
        return self.a(x) * (1 + kept(x.shape[0], self.ratio))


class Accumulated(Two):
    def forward(self, x):
        y, t, n = self.a(x), 0.1, 0
        while t < 1.0:
            t = t + 0.1
            n = n + 1
        return y * n


# Right as they are.


class Halves(Two):
    def forward(self, x):
        n, d = x.shape
        half, root = int(d / 2), int((n * 2) ** 0.5)
        third = math.ceil(d / 4) + int(d * 0.5) + round(d * 1.5)
        scale = d**-0.5
        if self.ratio > 0.3 and d / n > 1.5:
            x = x * scale * self.step
        return self.a(x)[:, :half] * root * third
