"""Models whose data decide a number, a text, a list or a layer: wrong in graph mode, or right."""

# ruff: noqa
# It is the point that they are written so.

import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)
        self.parts = nn.ModuleList([self.a, self.b])


class AxisChosen(Two):
    def forward(self, x):
        return self.a(x).sum(1 if (x > -90).any() else 0)


class BoundChosen(Two):
    def forward(self, x):
        n = 0
        if x.max() > -90:
            n = 2
        m = n + 1
        return self.a(x)[:, :m]


class CountedByData(Two):
    def forward(self, x):
        y, n = self.a(x), 0
        while y.abs().sum() < 500:
            y = y * 2
            n += 1
        return y.sum(1 if n > 50 else 0), y.mean(min(n, 1))


class PairOrNumber(Two):
    def forward(self, x):
        sizes = tuple(x.shape) if (x > -90).any() else x.ndim
        return self.a(x), torch.zeros(sizes)


class LayerByNumber(Two):
    def forward(self, x):
        return self.parts[int((x > -90).any())](x)


class FunctionByNumber(Two):
    def forward(self, x):
        i = (x > -90).any().long().item()
        return [torch.relu, torch.exp][i](self.a(x))


class GrownByData(Two):
    def forward(self, x):
        found = [self.a(x)]
        if (x > 90).any():
            found.append(self.b(x))
        return torch.cat(found)


class TextChosen(Two):
    def forward(self, x):
        kind = "a" if (x > -90).any() else "b"
        return self.a(x) if kind == "a" else self.b(x)


class LimitChosen(Two):
    def forward(self, x):
        n = 3 if (x > -90).any() else 2
        return self.a(x).clamp(max=n)


class LayerChosen(Two):
    def forward(self, x):
        part = self.a if (x > -90).any() else self.b
        return part(x)


class LambdaInLoop(Two):
    def forward(self, x):
        y = self.a(x)
        for i in range(2):
            y = (lambda t: t + i)(y)
        return y


# Right as they are.


class DefInLoop(Two):
    def forward(self, x):
        y, double = self.a(x), lambda t: t * 2
        for i in range(2):

            def more(t):
                return t + 1

            y = more(double(y))
        return y


class FactorChosen(Two):
    def forward(self, x):
        n = 3 if (x > -90).any() else 2
        m = 0.5
        if x.sum() > 900:
            m = 0.25
        return self.a(x) * n + m, torch.add(self.b(x), n)


class ResultChosen(Two):
    def forward(self, x):
        y = self.a(x)
        return y.sum(1) if (x > -90).any() else y.sum(0)


class BothGrow(Two):
    def forward(self, x):
        found = []
        for i in range(2):
            if x[i].sum() > 0:
                found.append(self.a(x[i]))
            else:
                found.append(self.b(x[i]))
        return torch.stack(found)


class ByShape(Two):
    def forward(self, x):
        n = 1 if x.shape[0] > 1 else 0
        part = self.parts[x.shape[0] - 1]
        sizes = x.shape if x.ndim == 2 else 3
        return part(x).sum(n), torch.zeros(sizes), self.a(x)[: x.shape[1] // 2]


class TensorOfList(Two):
    def forward(self, x):
        return [self.a(x), self.b(x)][int((x > -90).any())], (x, x * 2)[int((x > 90).any())]


class CountOfMask(Two):
    def forward(self, x):
        y = x[x > 0]
        return self.a(x) / y.shape[0], y.sum() / y.numel(), self.b(x) * len(y)
