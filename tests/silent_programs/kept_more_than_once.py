# One tensor in two places of a container, or under a name that a class of Python's gives back.
import functools
from collections import ChainMap, defaultdict

import torch


class Shared:
    last = None


class Asked:
    def __init__(self, parts):
        self.__dict__["parts"] = parts

    def __getattr__(self, name):
        return self.parts[name]


#: call rows(A(3, 4), A(3, 4, s=2))
def rows(x, y):
    a, b = x * 2, y * 2
    (p, q), (r, s) = zip(*[(a, b), (b, a)])
    p += 1
    return a + b * 3 + s


#: call spread(A(3, 4))
def spread(x):
    pairs = [(x[0], x[1]), (x[1], x[2])]
    firsts, seconds = zip(*pairs)
    return firsts[0].std(0) + max(*[x.std(0)[0], x.std(0)[1]]) + seconds[1].var(0)


#: call outer(A(3, 4))
def outer(x):
    total = x * 0

    def add(t):
        nonlocal total
        total += t

    before = total
    add(x)
    return total * before


#: call of_class(A(3, 4))
def of_class(x):
    y = x * 2
    Shared.last = y
    one = Shared()
    one.last += 1
    return y + 1


#: call asked(A(3, 4))
def asked(x):
    y = x * 2
    w = Asked({"w": y}).w
    w += 1
    return y


#: call mapped(A(3, 4))
def mapped(x):
    y = x * 2
    held = ChainMap({}, {"a": y})
    held["a"] += 1
    return y * 2 + held["a"]


#: call made_by(A(3, 4))
def made_by(x):
    y = x * 2
    held = defaultdict(lambda: y)
    held["a"] += 1
    return y * 2


#: call sliced(A(3, 4))
def sliced(x):
    ys = [x * 2, x * 3]
    zs = ys[:]
    zs[0] += 1
    zs[1] = x
    return ys[0] * ys[1]


#: call times(A(3, 4))
def times(x):
    ys = [x * 2] * 3
    ys[0] += 1
    ys[1].mul_(2)
    return ys[2] * 1


#: call written_out(A(3, 4))
def written_out(x):
    y = x * 2
    ys = [y, y]
    ys[0] += 1
    return ys[1]


#: call each(A(3, 4))
def each(x):
    y = x * 2
    ys = [y for _ in range(2)]
    ys[0] += 1
    return ys[1]


#: call plus(A(3, 4))
def plus(x):
    ys = [x * 2]
    zs = ys + ys
    zs[0] += 1
    return zs[1]


def adding(f):
    @functools.wraps(f)
    def inner(t):
        t += 1
        return f(t)

    return inner


@adding
def doubled(t):
    return t * 2


#: call wrapped(A(3, 4))
def wrapped(x):
    y = x * 2
    return doubled(y) + y
