# A container that an object holds has a tensor and its view: a write of one is seen by the other.
import torch
from torch import nn

class Parts:
    def __init__(self, *parts):
        self.parts = list(parts)
    def scale(self):
        self.parts[0].mul_(2)

class Both:
    def __init__(self, a, b):
        self.all = {"a": a, "b": [b]}

class Fresh:
    def __init__(self, *parts):
        self.parts = [p + 1 for p in parts]

#: call parted(A(3, 4))
def parted(x):
    y = x * 1.5
    p = Parts(y, y.view(-1))
    p.parts[0].mul_(2)
    return p.parts[1] + 1

#: call parted2(A(3, 4))
def parted2(x):
    y = x * 1.5
    p = Parts(y, y.view(-1))
    p.scale()
    return p.parts[1] + 1

#: call both(A(3, 4))
def both(x):
    y = x * 1.5
    p = Both(y, y.view(-1))
    p.all["a"].mul_(2)
    return p.all["b"][0] + 1

#: call fresh(A(3, 4))
def fresh(x):
    y = x * 1.5
    p = Fresh(y, y.view(-1))
    p.parts[0].mul_(2)
    return p.parts[1] + 1 + p.parts[0].sum()

#: call single(A(3, 4))
def single(x):
    y = x * 1.5
    p = Parts(y, x)
    p.parts[0].mul_(2)
    return p.parts[1] + 1 + p.parts[0].sum()

class Four:
    def __init__(self, *parts):
        self.parts = list(parts)
    def scale(self):
        for p in self.parts:
            p.mul_(2)

#: call s5(A(3, 4))
def s5(x):
    y = x * 1.5
    p = Four(y, x * 2)
    p.scale()
    return p.parts[0] + 1
