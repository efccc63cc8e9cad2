# Sums that begin with 0, and what the compiler leaves out: nothing else may change.
#: model Zero() <- A(3), A(3,s=2)
#: model ZeroLoop() <- A(3), A(3,s=2)
#: model ZeroLayers() <- A(2,3)
#: model Cast() <- A(3)
#: model Repeat() <- A(1,3)
#: model Token() <- A(2,3)
#: model Off() <- A(3)
#: model Helper() <- A(3), A(3,s=2)
#: model Residual() <- A(2,3)
#: model Start() <- A(2,3)
#: model Attr() <- A(3)
#: model Glob() <- A(3)
#: model Table() <- A(3)
#: model Mask() <- A(2,3)
#: call lone(A(3))
#: call lone_list(A(3))
import torch
import torch.nn as nn
import torch.nn.functional as F

G = torch.tensor([1.0, 2.0, 3.0])


class Zero(nn.Module):
    def forward(self, x, y):
        total = 0
        total += x
        total += y
        return total * x, x


class ZeroLoop(nn.Module):
    def forward(self, x, y):
        total = 0.0
        for t in (x, y, x * y):
            total += t
        return total * x


class ZeroLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.ls = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        total, fs = 0, []
        for l in self.ls:
            f = l(x)
            total += f
            fs.append(f ** 2)
        return total * fs[0] * fs[1] + fs[2]


class Cast(nn.Module):
    def forward(self, x):
        h = x.double().float()
        h += 1
        return h * x


class Repeat(nn.Module):
    def forward(self, x):
        h = x.repeat(x.shape[0], 1)
        h += 1
        return h * x


class Token(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.ones(1, 3))
        self.n = 1

    def forward(self, x):
        t = self.token.repeat(self.n, 1)
        t += x[:1]
        return t * self.token


class Off(nn.Module):
    def __init__(self):
        super().__init__()
        self.off = 0.0

    def forward(self, x):
        h = x * 2
        t = h + self.off
        t *= x
        return t + h * h


def add(a, b):
    a += b
    return a


class Helper(nn.Module):
    def forward(self, x, y):
        return add(torch.tensor([1.0, 2.0, 3.0]), x) + add(x + 0, y) * x


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        out = self.drop(self.fc(x))
        out += x
        return out * x


class Start(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y = self.fc(x)
        out = torch.zeros_like(y)
        for i in range(3):
            out += y * i
        out += y
        return out * y


class Attr(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x):
        t = self.c.clone()
        t += x
        u = self.c + 0
        u *= 2
        return t * u


class Glob(nn.Module):
    def forward(self, x):
        t = G.clone()
        t *= 2
        u = G.float().clone()
        u -= 1
        return t * x + u


def table():
    return [torch.tensor([1.0, 2.0, 3.0]), torch.arange(3).float()]


class Table(nn.Module):
    def forward(self, x):
        a, b = table()
        a += 1
        b += 1
        c = {"k": torch.tensor([1.0, 1.0, 1.0])}["k"]
        c += 1
        return x * a + b * c


class Mask(nn.Module):
    def forward(self, x):
        m = torch.ones(3, 3).tril().clone()
        m -= 1
        m *= 10
        return x @ m


def lone(x: torch.Tensor):
    total = 0
    for one in (x, x * 2):
        total += one
    y = x.tile((1,))
    y += 1
    fixed = torch.tensor([1.0, 2.0, 3.0])
    fixed += x
    return total + x + y + fixed


def lone_list(x):
    sums = [torch.zeros(3), torch.zeros(3)]
    sums[0] += x
    sums[1] -= x
    held = {"a": torch.zeros(3), "b": torch.zeros(3)}
    held["a"] += x
    return sums[0] + sums[1] * 2 + held["a"] + held["b"] * 3
