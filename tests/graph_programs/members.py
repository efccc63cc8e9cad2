"""In: nothing. Out: models for graph mode: functions and children by names of their own."""

# ruff: noqa
# It is the point that they are written so.

from math import pi, sqrt

import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class NamedSqrt(Two):
    def forward(self, x):
        n, d = int(sqrt(x.shape[-1])), x.dtype
        width = x.size(1)
        return self.a(x) * n * pi + self.b(x) / sqrt(width) + sqrt(2.0)


class NamedChildrenOfList(nn.Module):
    def __init__(self):
        super().__init__()
        self.path = nn.ModuleList()
        self.path.add_module("act", nn.Tanh())
        self.path.add_module("fc", nn.Linear(6, 6))

    def forward(self, x):
        x = self.path.act(x)
        return self.path.fc(x) * 2


class NamedChildrenOfSequential(nn.Module):
    def __init__(self):
        super().__init__()
        self.path = nn.Sequential()
        self.path.add_module("act", nn.Tanh())
        self.path.add_module("fc", nn.Linear(6, 6))

    def forward(self, x):
        return self.path.fc(x) + self.path(x)
