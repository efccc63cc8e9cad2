# What a block without gradients binds anew has none, also where nothing tells that it is a tensor.
#: call f(A(3))
#: call g(A(3))
#: call h(A(3), 2)
#: call k(A(3))
#: call parts(A(3), A(3, s=4))
import torch


def f(x):
    y = x * 2
    with torch.no_grad():
        z = y
        w = y * 2
        y = y + 1
        u = x
    return z + w + y + u


def g(x):
    with torch.no_grad():
        x = x + 1
    return x * 2


def h(x, n):
    total = 0
    for i in range(n):
        with torch.no_grad():
            total = total + x
            total = total * 2
    return total * x


def k(x):
    y = x * 2
    with torch.no_grad():
        y = x
    return y


def parts(x, y):
    with torch.no_grad():
        (p, q), r = (x + y, x), x - y
        a = b = x * 3
        x, y = y, x
    return p + q + r, x, y, a * x, b * y
