# Writes that somebody misses: they have to stop.
#: model Views() <- A(2,4)
#: model Kept() <- A(2,4)
#: model InList() <- A(2,4)
#: model Layer() <- A(2,4)
#: model Loop() <- A(2,4)
#: model Closure() <- A(2,4)
#: model Attribute() <- A(2,4)
#: model Chunk() <- A(2,4)
#: model Dict() <- A(2,4)
#: model Outer() <- A(2,4)
import torch
import torch.nn as nn
import torch.nn.functional as F


class Views(nn.Module):
    def forward(self, x):
        y = x * 2
        a, b = y[:, :2], y[:, 2:]
        a += 1
        b[:, 0] = 7.0
        return y


class Kept(nn.Module):
    def forward(self, x):
        y = x * 2
        before = y
        y += 1
        return before * y


class InList(nn.Module):
    def forward(self, x):
        h = x * 2
        seen = [h]
        h[:, 0] = 0.0
        return seen[0]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        h = self.act[0](x)
        y = h
        return self.relu(h) + y


class Loop(nn.Module):
    def forward(self, x):
        rows = [r for r in (x * 2)]
        total = rows[0]
        for r in rows[1:]:
            total += r
        return total * rows[0]


class Closure(nn.Module):
    def forward(self, x):
        y = x * 2

        def bump():
            y[:, 0] = 9.0

        bump()
        return y


class Attribute(nn.Module):
    def forward(self, x):
        self.last = x * 2
        y = self.last
        y[:, 1] = 3.0
        return self.last


class Chunk(nn.Module):
    def forward(self, x):
        y = x * 2
        left, right = y.chunk(2, dim=1)
        left.mul_(3)
        return y + right.sum()


class Dict(nn.Module):
    def forward(self, x):
        d = {"a": x * 2}
        v = d["a"]
        v -= 1
        return d["a"]


class Outer(nn.Module):
    def forward(self, x):
        y = x * 2
        z = y.t()
        F.dropout(z, 0.0, inplace=True)
        F.relu_(z)
        return y
