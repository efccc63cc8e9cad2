"""In: nothing. Out: models for graph mode, one for each construct: loops in one, pairs."""

# ruff: noqa
# It is the point that they are written so.

import itertools
from itertools import combinations

import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])

    def three(self, x):
        return [self.a(x), self.b(x), x]


class TwoLoops(Two):
    def forward(self, x):
        parts = self.three(x)
        made = [(p * q) for p in parts for q in (parts[0], parts[2])]
        return torch.stack(made).sum(0)


class TwoLoopsChosen(Two):
    def forward(self, x):
        parts = self.three(x)
        made = [p * q for i, p in enumerate(parts) if i > 0 for j, q in enumerate(parts) if j > i]
        return made[0]


class TwoLoopsSum(Two):
    def forward(self, x):
        return sum(layer(p) for layer in self.layers for p in self.three(x))


class TwoLoopsInner(Two):
    def forward(self, x):
        rows = [[p, p + 1] for p in self.three(x)]
        return torch.cat([q for row in rows for q in row], dim=1)


class PairsOfTensors(Two):
    def forward(self, x):
        parts = self.three(x)
        return torch.cat([p * q for p, q in itertools.combinations(parts, 2)], dim=1)


class PairsAndLayers(Two):
    def forward(self, inputs):
        parts = torch.split(inputs, 2, dim=1)
        parts = [torch.cat([i, i, i], dim=1) for i in parts]
        p = [torch.mul(layer(v[0]), v[1]) for v, layer in zip(combinations(parts, 2), self.layers)]
        return torch.cat(p, dim=1)


class OrderedPairs(Two):
    def forward(self, x):
        parts = self.three(x)
        y = x
        for p, q in itertools.permutations(parts, 2):
            y = y + p * q
        for p, q, r in itertools.combinations_with_replacement(parts, 3):
            y = y + p * q - r
        return y


class PairsOfNumbers(Two):
    def forward(self, x):
        parts = self.three(x)
        y = x
        for i, j in itertools.combinations(range(len(parts)), 2):
            y = y + parts[i] * parts[j]
        return y + sum([parts[i] for i, j in itertools.permutations(range(3), 2)])


class PairsUnknown(Two):
    def forward(self, x):
        y = x
        for chosen in itertools.combinations(self.three(x), 2):
            y = y + chosen[0] * chosen[1]
        return y


class ThreeLoops(Two):
    def forward(self, x):
        parts = self.three(x)
        return sum([p * q * r for p in parts for q in parts for r in parts])
