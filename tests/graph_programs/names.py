"""In: nothing. Out: models for graph mode, one for each construct: names bound on one way only."""

# ruff: noqa
# It is the point that they are written so.

import torch
from torch import nn


def exists(value):
    return value is not None


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
        self.memory = None
        self.steps = 3
        self.wide = True


class IfTwice(Two):
    def forward(self, x):
        has = self.steps > 5
        if has:
            extra, every = self.b(x), None
        x = self.a(x)
        if has:
            x = x + extra
        if has and exists(every):
            x = x * every
        return x


class IfTwiceTrue(Two):
    def forward(self, x):
        # how many there are
        has = self.steps > 2
        if has:
            extra = self.b(x)  # for later
        x = self.a(x)
        if has:
            x = x + extra
        return x


class IfCalled(Two):
    def forward(self, x):
        if exists(self.memory):
            extra = self.b(x)
        y = self.a(x)
        return y + extra if exists(self.memory) else y


class IfOwn(Two):
    def forward(self, x):
        if self.wide and self.memory is None:
            extra = self.b(x)
        x = self.a(x)
        if self.wide and self.memory is None:
            x = x + extra
        return x


class IfArgument(Two):
    def part(self, x, mask=None):
        if mask is not None:
            kept = x * mask
        x = self.a(x)
        if mask is not None:
            x = x + kept
        return x

    def forward(self, x):
        return self.part(x) + self.part(x, torch.relu(x))


class LoopKinds(Two):
    def forward(self, x):
        for kind in ["f", "a", "f", "a"]:
            if kind == "a":
                kept = self.a(x)
            if kind == "a":
                x = x + kept
            elif kind == "f":
                x = self.b(x)
        return x


class LoopPrevious(Two):
    def forward(self, x):
        total = x
        for i, layer in enumerate(self.layers):
            if i > 0:
                total = total + previous
            previous = layer(x)
        return total + previous


class LoopAfter(Two):
    def forward(self, x):
        for layer in self.layers:
            y = layer(x)
            x = torch.relu(y)
        return x + y


class LoopCounter(Two):
    def forward(self, x):
        for i in range(self.steps):
            x = self.a(x)
        return x * i


class WhileAfter(Two):
    def forward(self, x):
        n = 0
        while n < self.steps:
            y = self.a(x)
            n += 1
        return y


class LoopWithoutPass(Two):
    def forward(self, x):
        for i in range(self.steps - 3):
            y = self.a(x)
        return self.b(x) if self.steps == 3 else y


class EachWay(Two):
    def forward(self, x):
        n = self.steps + 1
        if n == 4:
            y = self.a(x)
        elif n == 5:
            y = self.b(x)
        else:
            raise ValueError(n)
        return y


class RaisedInBranch(Two):
    def forward(self, x):
        if exists(self.memory):
            # what has no target raises, the lines below it stay
            kept, *rest = torch.utils._pytree.tree_leaves(self.memory)
            if kept.ndim == 3:
                kept = kept[0]
            x = x + kept
        return self.a(x)
