# What graph mode passes over without a word: right, or stopped, in both modes.
#: model D1() <- A(2,4)
#: model D2() <- A(2,4)
#: model D3() <- A(2,4)
#: model D4() <- A(2,4)
#: model D5() <- A(2,4)
#: model D6() <- A(2,4)
#: model D7() <- A(2,4)
#: model D8() <- A(2,4)
from collections import defaultdict
import torch
import torch.nn as nn

LOG = []
STATS = {'n': 0}


def helper(x, acc=[]):
    acc.append(1)
    return x * len(acc)


class D1(nn.Module):
    def forward(self, x):
        return helper(x)


class D2(nn.Module):
    def forward(self, x):
        LOG.append(x.mean())
        return x + len(LOG)


class D3(nn.Module):
    def forward(self, x):
        STATS['n'] += 1
        return x * STATS['n']


class D4(nn.Module):
    seen = []

    def forward(self, x):
        self.seen.append(1)
        return x * len(self.seen)


class D5(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = {}

    def forward(self, x):
        self.d.update({'a': len(self.d) + 1})
        self.d.setdefault('b', 3)
        return x * len(self.d)


class Meter:
    def __init__(self):
        self.items = []

    def add(self, v):
        self.items.append(v)
        return len(self.items)


class D6(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = Meter()

    def forward(self, x):
        return x * self.m.add(1)


class D7(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = [1, 2, 3]

    def forward(self, x):
        items = self.l
        items.insert(0, 5)
        return x * items[0] + len(self.l)


class D8(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.ModuleList([D4b()])
        self.got = []

    def forward(self, x):
        for c in self.c:
            x = c(x)
            self.got.append(c.n)
        return x + len(self.got)


class D4b(nn.Module):
    n = 3

    def forward(self, x):
        return x * 2
