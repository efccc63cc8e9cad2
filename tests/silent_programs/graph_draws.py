# What graph mode passes over without a word: right, or stopped, in both modes.
#: model R1() <- A(2,4)
#: model R2() <- A(2,4)
#: model R3() <- A(2,4)
#: model R4() <- A(2,4)
#: model R5() <- A(2,4)
import random
import numpy as np
import torch
import torch.nn as nn
from random import uniform


class Seq:
    def __init__(self):
        self.n = 0


class R1(nn.Module):
    def forward(self, x):
        random.seed(len(HIST))
        return x * random.random()


HIST = []


class R2(nn.Module):
    def forward(self, x):
        k = 1
        def g(v):
            return v * k
        k = 3
        return g(x)


class R3(nn.Module):
    def forward(self, x):
        fs = [lambda v: v * i for i in range(3)]
        return fs[0](x) + fs[1](x)


class R4(nn.Module):
    def forward(self, x):
        total = [0]
        def add(v):
            total[0] = total[0] + v
        add(2)
        add(3)
        return x * total[0]


class R5(nn.Module):
    def forward(self, x):
        rows = [[1], [2]]
        for r in rows:
            r.append(3)
        d = {'a': 1}
        e = d
        e['a'] = 5
        return x * len(rows[0]) + d['a']
