# Objects of Python's own classes hold a tensor and a view of it; a class keeps what is set by itself.
from argparse import Namespace
from collections import UserList, deque, namedtuple
from types import SimpleNamespace

import torch

Pair = namedtuple("Pair", "a b")


class Proxy:
    def __init__(self, x):
        self.__dict__["store"] = {"x": x}

    def __getattr__(self, name):
        return self.__dict__["store"][name]

    def __setattr__(self, name, value):
        self.__dict__["store"][name] = value


#: call nt(A(3, 4))
def nt(x):
    y = x * 1.5
    p = Pair(y, y.view(-1))
    p.a.mul_(2)
    return p.b + 1


#: call px(A(3, 4))
def px(x):
    y = x * 1.5
    p = Proxy(y)
    p.x.mul_(2)
    return y + 1


#: call px2(A(3, 4))
def px2(x):
    y = x * 1.5
    p = Proxy(y)
    p.z = p.x
    p.x += 1
    return p.z + y


#: call s1(A(3, 4))
def s1(x):
    y = x * 1.5
    p = SimpleNamespace(a=y, b=y.view(-1))
    p.a.mul_(2)
    return p.b + 1


#: call s2(A(3, 4))
def s2(x):
    y = x * 1.5
    q = deque([y, y.view(-1)], maxlen=2)
    q[0].mul_(2)
    return q[1] + 1


#: call s7(A(3, 4))
def s7(x):
    y = x * 1.5
    l = UserList([y, y.view(-1)])
    l[0].mul_(2)
    return l[1] + 1


Q = namedtuple("Q", ["a", "b"], defaults=[None])


class R(namedtuple("R", "a b")):
    def twice(self):
        self.a.mul_(2)


#: call s13(A(3, 4))
def s13(x):
    y = x * 1.5
    p = Pair(y, y.view(-1))
    p.a[0] = 7
    return p.b + 1


#: call s14(A(3, 4))
def s14(x):
    y = x * 1.5
    p = SimpleNamespace(a=y, b=y)
    p.a += 1
    return p.b + 1


#: call s15(A(3, 4))
def s15(x):
    y = x * 1.5
    p = Namespace(a=y, b=1)
    p.a += 1
    return y
