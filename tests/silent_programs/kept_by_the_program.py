# What a function keeps for the next call, and gradients that are recorded again inside of no_grad.
#: model Counted() <- A(2,3)
#: model Anew() <- A(2,3)
from functools import cached_property, lru_cache

import torch
import torch.nn as nn


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3), persistent=False)

    def forward(self, x):
        self.seen += x.detach().mean(0)
        return x * self.seen


class Anew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3), persistent=False)

    def forward(self, x):
        self.seen = self.seen + x.detach().mean(0)
        return x * self.seen


@lru_cache(maxsize=None)
def table(n):
    return torch.arange(n).float()


#: call cached(A(3))
def cached(x):
    t = table(3)
    t += 1
    return x * table(3)


#: call cached_method(A(3))
def cached_method(x):
    t = table(3)
    t.mul_(2)
    return x * table(3)


@torch.enable_grad()
def recorded(x):
    return x * 3


#: call inside(A(3))
def inside(x):
    with torch.no_grad():
        y = recorded(x)
    return y * x


class Held:
    @torch.enable_grad()
    def run(self, x):
        return x * 3


#: call method(A(3))
@torch.no_grad()
def method(x):
    return Held().run(x) + x


class Kept:
    def __init__(self, x):
        self.x = x

    @cached_property
    def twice(self):
        return self.x * 2

    @property
    def thrice(self):
        return self.x * 3


#: call kept(A(3))
def kept(x):
    one = Kept(x)
    a = one.twice
    b = one.twice
    a += 1
    return b + one.twice


#: call anew(A(3))
def anew(x):
    one = Kept(x)
    a = one.thrice
    a += 1
    return a + one.thrice
