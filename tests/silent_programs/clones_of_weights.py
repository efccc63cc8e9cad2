# A copy of a weight has the weight's gradient: clone, stack of clones, contiguous, an index of a copy.
#: model Clones() <- A(4,6)
#: model Inner() <- A(4,6)
#: model Placed() <- A(4,6)
import torch
import torch.nn as nn


class Clones(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(6, 6)
        self.w = nn.Parameter(torch.arange(36.0).view(6, 6).sin())

    def forward(self, x):
        fixed = self.f.weight.detach().clone()
        same = self.w.contiguous().clone()
        return self.f(x) @ fixed + x @ self.f.weight.clone() + x @ torch.clone(self.w) * same[0]


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(36.0).view(6, 6).cos())
        self.b = nn.Parameter(torch.ones(6))

    def forward(self, x):
        fast = [p.clone() for p in (self.w, self.b)]
        for _ in range(2):
            fast = [p - 0.1 * p * p for p in fast]
        return x @ fast[0] + fast[1]


class Placed(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(36.0).view(6, 6).cos())
        self.s = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        w = self.w.clone()
        w[0] = 0
        v = self.w.index_fill(0, torch.tensor([1]), 2.0).scatter(1, torch.zeros(6, 1).long(), 1.0)
        return x @ w + x @ v + self.s.cumsum(0)
