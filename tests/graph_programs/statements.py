"""In: nothing. Out: models for graph mode, one for each construct: statements."""

# ruff: noqa
# It is the point that they are written so.

import contextlib
import math
import warnings

import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class TryExcept(Two):
    def forward(self, x):
        try:
            y = self.a(x)
        except RuntimeError:
            y = self.b(x)
        return y * 2


class TryFinally(Two):
    def forward(self, x):
        try:
            y = self.a(x)
        finally:
            self.done = True
        return self.b(y)


class TryKey(Two):
    def __init__(self):
        super().__init__()
        self.scales = {"low": 0.5}

    def forward(self, x):
        try:
            scale = self.scales["high"]
        except KeyError:
            scale = 3.0
        return self.a(x) * scale


class WalrusIf(Two):
    def forward(self, x):
        if (n := x.shape[1]) > 4:
            return self.a(x) * n
        return self.b(x)


class WalrusExpression(Two):
    def forward(self, x):
        y = torch.relu(h := self.a(x)) + self.b(h)
        return y


class WalrusWhile(Two):
    def __init__(self):
        super().__init__()
        self.steps = 3

    def forward(self, x):
        i = 0
        while (i := i + 1) < self.steps:
            x = self.a(x)
        return x


class WalrusElif(Two):
    def forward(self, x):
        if x.shape[0] > 100:
            return x
        elif (n := x.shape[1]) > 4:
            return self.a(x) * n
        return self.b(x)


class WalrusReturn(Two):
    def forward(self, x):
        return (y := self.a(x)) * torch.sigmoid(y)


class MatchStrings(Two):
    def __init__(self):
        super().__init__()
        self.mode = "gated"

    def forward(self, x):
        match self.mode:
            case "plain":
                return self.a(x)
            case "gated" | "gate":
                return self.a(x) * torch.sigmoid(self.b(x))
            case _:
                raise ValueError(self.mode)


class MatchShape(Two):
    def forward(self, x):
        match x.shape:
            case (_, 5):
                return self.b(x)
            case (n, 6):
                return self.a(x) * n
        return x


class SetMember(Two):
    def __init__(self):
        super().__init__()
        self.mode = "b"

    def forward(self, x):
        if self.mode in {"a", "b"}:
            return self.a(x)
        return self.b(x)


class SetLocal(Two):
    def forward(self, x):
        wanted = {0, 2}
        for i in range(3):
            if i in wanted:
                x = self.a(x)
            else:
                x = self.b(x)
        return x


class ForElse(Two):
    def forward(self, x):
        for n in (2, 3):
            x = self.a(x)
            if n > 5:
                break
        else:
            x = self.b(x)
        return x


class ForElseNoBreak(Two):
    def forward(self, x):
        for _ in range(2):
            x = self.a(x)
        else:
            x = self.b(x)
        return x


class Delete(Two):
    def forward(self, x):
        y = self.a(x)
        z = self.b(y)
        del y
        return z


class DeleteItem(Two):
    def forward(self, x):
        parts = {"a": self.a(x), "b": self.b(x)}
        del parts["b"]
        return sum(parts.values())


class Nonlocal(Two):
    def forward(self, x):
        total = 0

        def add(t):
            nonlocal total
            total = total + t

        add(self.a(x))
        add(self.b(x))
        return total


class Yields(Two):
    def steps(self, x):
        for layer in (self.a, self.b):
            x = layer(x)
            yield x

    def forward(self, x):
        return sum(y for y in self.steps(x))


class YieldsToList(Two):
    def steps(self, x):
        yield self.a(x)
        yield self.b(x)

    def forward(self, x):
        outs = list(self.steps(x))
        return outs[0] * outs[1]


class ImportInside(Two):
    def forward(self, x):
        import math

        return self.a(x) * math.sqrt(2.0)


class ImportFromInside(Two):
    def forward(self, x):
        from math import sqrt

        return self.a(x) * sqrt(2.0)


class WarnInside(Two):
    def forward(self, x):
        if x.shape[1] != 6:
            warnings.warn("not the width that was trained")
        return self.a(x)


class NullContext(Two):
    def forward(self, x):
        with contextlib.nullcontext():
            y = self.a(x)
        return self.b(y)


class MathConstant(Two):
    def forward(self, x):
        return self.a(x) / math.sqrt(x.size(-1))


class GlobalWrite(Two):
    def forward(self, x):
        global _seen
        _seen = 1
        return self.a(x)
