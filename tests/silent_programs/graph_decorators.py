# What graph mode passes over without a word: right, or stopped, in both modes.
#: model Fac() <- A(2,4)
#: model Two() <- A(2,4)
#: model Kw() <- A(2,4)
#: model Stat() <- A(2,4)
#: model Loc() <- A(2,4)
#: model Obj() <- A(2,4)
#: model Held() <- A(2,4)
#: model Bare() <- A(2,4)
#: model Lru() <- A(2,4)
#: model Ident() <- A(2,4)
#: model Inh() <- A(2,4)
import functools
import torch
import torch.nn as nn
import torch.nn.functional as F


def times(k):
    def deco(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs) * k
        return wrapper
    return deco


def plus(fn):
    @functools.wraps(fn)
    def wrapper(self, x, *args, **kwargs):
        return x + fn(self, x, *args, **kwargs)
    return wrapper


def bare(fn):
    def run(self, x):
        return x + fn(self, x)
    return run


def ident(fn):
    fn.tag = 1
    return fn


def shifted(fn):
    def inner(x):
        return fn(x) + 1
    return inner


class Shift:
    def __init__(self, fn):
        self.fn = fn

    def __call__(self, x):
        return self.fn(x) + 3


@Shift
def obj(x):
    return x * 2


@times(5)
def five(x):
    return x.abs()


held = times(7)(torch.tanh)


@functools.lru_cache(None)
def size(n):
    return n + 1


class Fac(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    @times(3)
    def forward(self, x):
        return self.l(x)


class Two(nn.Module):
    @times(3)
    @plus
    def forward(self, x):
        return x * x


class Kw(nn.Module):
    @plus
    def body(self, x, scale=1.0):
        return x * scale

    def forward(self, x):
        return self.body(x, scale=4.0)


class Stat(nn.Module):
    @staticmethod
    @times(2)
    def body(x):
        return x.sin()

    def forward(self, x):
        return self.body(x) + five(x)


class Loc(nn.Module):
    def forward(self, x):
        @shifted
        def g(v):
            return v * 2
        return g(x)


class Obj(nn.Module):
    def forward(self, x):
        return obj(x)


class Held(nn.Module):
    def forward(self, x):
        return held(x)


class Bare(nn.Module):
    @bare
    def forward(self, x):
        return x * 2


class Lru(nn.Module):
    def forward(self, x):
        return x * size(3)


class Ident(nn.Module):
    @ident
    def forward(self, x):
        return x * 3


class Inh(Fac):
    @times(2)
    def forward(self, x):
        return super().forward(x) + 1
