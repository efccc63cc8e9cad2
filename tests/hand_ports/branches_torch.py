"""Models with branches that only their place in the data flow tells apart."""

import torch
from torch import nn


class Twin(nn.Module):
    """Two branches of one shape that meet in a difference."""

    def __init__(self):
        super().__init__()
        self.positive = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.negative = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.positive(x) - 2 * self.negative(x))


class Inception(nn.Module):
    """Branches of equal kernels and unequal depth, one after another in a list."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.branches = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)
                ),
                nn.Sequential(nn.Conv2d(8, 8, 3, padding=1)),
                nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)),
            ]
        )
        self.fc = nn.Linear(24, 5)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        found = torch.cat([branch(x) for branch in self.branches], 1)
        return self.fc(found.mean((2, 3)))


class Gate(nn.Module):
    """Three layers of one shape on one input, and a chain behind each."""

    def __init__(self):
        super().__init__()
        self.a1, self.a2 = nn.Linear(6, 6), nn.Linear(6, 6)
        self.b1, self.b2 = nn.Linear(6, 6), nn.Linear(6, 6)
        self.c1, self.c2 = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        a = self.a2(torch.tanh(self.a1(x)))
        b = self.b2(torch.sigmoid(self.b1(x)))
        c = self.c2(torch.relu(self.c1(x)))
        return a * b + c


class Blocks(nn.Module):
    """A chain of equal blocks, and two branches whose names say which is which."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
        self.mean, self.scale = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x):
        for block in self.blocks:
            x = torch.tanh(block(x))
        return torch.cat([self.mean(x), self.scale(x)], -1)
