# What runs without a call that names it writes what a view of the caller sees.
#: call ctor(A(3))
#: call over(A(3))
#: call part(A(3))
#: call mapped(A(3))
#: call handed(A(3))
#: call dictcall(A(3))
#: call prop(A(3))
#: call cls(A(3))
#: call stat(A(3))
#: call sup(A(3))
#: call lam(A(3))
#: call nested(A(3))
#: call sorted_key(A(3))
#: call gen(A(3))
#: call inst(A(3))
#: call ret_self(A(3))
#: call attr_fn(A(3))
#: call reduced(A(3))
#: call data_class(A(3))
#: call set_item(A(3))
#: call get_item(A(3))
#: call for_iter(A(3))
#: call setter(A(3))
#: call delegate(A(3))
#: call two_impl(A(3))
import functools
from dataclasses import dataclass
import torch


class W:
    def __init__(self, t):
        t.add_(1)
        self.t = t


def ctor(x):
    y = x * 2
    v = y.view(-1)
    W(y)
    return v


class Base:
    def __init__(self):
        self.buf = torch.zeros(3)

    def put(self, x):
        return x


class Sub(Base):
    def put(self, x):
        self.buf.add_(x)
        return x


def use(obj: Base, x):
    v = obj.buf.view(-1)
    obj.put(x)
    return v * 1


def over(x):
    return use(Sub(), x)


def addto(t, v):
    t.add_(v)


def part(x):
    y = x * 2
    v = y.view(-1)
    f = functools.partial(addto, y)
    f(1.0)
    return v * 1


def mapped(x):
    y = x * 2
    v = y.view(-1)
    list(map(lambda t: t.add_(1), [y]))
    return v * 1


def apply(fn, *args):
    return fn(*args)


def handed(x):
    y = x * 2
    v = y.view(-1)
    apply(addto, y, 2.0)
    return v * 1


def dictcall(x):
    y = x * 2
    v = y.view(-1)
    table = {"a": addto}
    table["a"](y, 2.0)
    return v * 1


class P:
    def __init__(self):
        self.buf = torch.zeros(3)

    @property
    def bumped(self):
        self.buf.add_(1)
        return self.buf


def prop(x):
    p = P()
    v = p.buf.view(-1)
    p.bumped
    return v * x


class C:
    buf = torch.zeros(3)

    @classmethod
    def bump(cls, x):
        cls.buf.add_(x)

    @staticmethod
    def add(t, x):
        t.add_(x)


def cls(x):
    C.buf = torch.zeros(3)
    v = C.buf.view(-1)
    C.bump(x)
    return v * 1


def stat(x):
    y = x * 2
    v = y.view(-1)
    C.add(y, x)
    return v * 1


class S2(Sub):
    def put(self, x):
        return super().put(x)


def sup(x):
    s = S2()
    v = s.buf.view(-1)
    s.put(x)
    return v * 1


def lam(x):
    y = x * 2
    v = y.view(-1)
    f = lambda: y.add_(1)
    f()
    return v * 1


def nested(x):
    y = x * 2
    v = y.view(-1)

    def g():
        y.add_(1)

    g()
    return v * 1


def sorted_key(x):
    y = x * 2
    v = y.view(-1)
    sorted([y], key=lambda t: t.add_(1).sum().item())
    return v * 1


def emit(y):
    y.add_(1)
    yield y
    y.add_(1)
    yield y


def gen(x):
    y = x * 2
    v = y.view(-1)
    for _ in emit(y):
        pass
    return v * 1


class Inst:
    def __init__(self, fn):
        self.fn = fn

    def run(self, t):
        return self.fn(t, 1.0)


def inst(x):
    y = x * 2
    v = y.view(-1)
    Inst(addto).run(y)
    return v * 1


class Chain:
    def __init__(self, t):
        self.t = t

    def bump(self):
        self.t.add_(1)
        return self

    def show(self):
        return self.t


def ret_self(x):
    y = x * 2
    v = y.view(-1)
    Chain(y).bump().bump()
    return v * 1


class AttrFn:
    def __init__(self):
        self.fn = addto


def attr_fn(x):
    y = x * 2
    v = y.view(-1)
    a = AttrFn()
    a.fn(y, 1.0)
    return v * 1


def acc(a, b):
    a.add_(b)
    return a


def reduced(x):
    y = x * 2
    v = y.view(-1)
    functools.reduce(acc, [x, x], y)
    return v * 1


@dataclass
class D:
    t: torch.Tensor

    def __post_init__(self):
        self.t.add_(1)


def data_class(x):
    y = x * 2
    v = y.view(-1)
    D(y)
    return v * 1


class Box:
    def __init__(self, t):
        self.t = t

    def __setitem__(self, i, v):
        self.t[i] = v

    def __getitem__(self, i):
        self.t.add_(1)
        return self.t[i]

    def __iter__(self):
        self.t.add_(1)
        return iter([1, 2])

    @property
    def val(self):
        return self.t

    @val.setter
    def val(self, v):
        self.t.copy_(v)

    def __getattr__(self, name):
        self.t.add_(1)
        return 3


def set_item(x):
    y = x * 2
    v = y.view(-1)
    b = Box(y)
    b[0] = 3.0
    return v * 1


def get_item(x):
    y = x * 2
    v = y.view(-1)
    b = Box(y)
    b[0]
    return v * 1


def for_iter(x):
    y = x * 2
    v = y.view(-1)
    b = Box(y)
    for i in b:
        pass
    return v * 1


def setter(x):
    y = x * 2
    v = y.view(-1)
    b = Box(y)
    b.val = x
    return v * 1


def delegate(x):
    y = x * 2
    v = y.view(-1)
    b = Box(y)
    b.nothing
    return v * 1


class One:
    def go(self, t):
        return t


class Two:
    def go(self, t):
        t.add_(1)
        return t


def two_impl(x):
    y = x * 2
    v = y.view(-1)
    for o in (One(), Two()):
        o.go(y)
    return v * 1
