# What is returned, or a function that is, reads a tensor behind the write that comes last.
import torch


#: call t4(A(3, 4))
def t4(x):
    def f(y):
        try:
            return y
        finally:
            y.mul_(2)

    y = x * 1.5
    return f(y) + 1


#: call t5(A(3, 4))
def t5(x):
    def f(y):
        try:
            return y * 1
        finally:
            y.mul_(2)

    y = x * 1.5
    z = f(y)
    return z + y


class Scaled:
    def __init__(self, t, s):
        self.t, self.s = t, s

    def __enter__(self):
        self.t.mul_(self.s)
        return self

    def __exit__(self, *args):
        self.t.div_(self.s)
        return True


#: call t19(A(3, 4))
def t19(x):
    y = x * 1.5
    with torch.no_grad():
        y += 1
        y[0] = 0
    return y * x


#: call s18(A(3, 4))
def s18(x):
    y = x * 1.5

    def outer():
        z = y.view(-1)
        return lambda: z + 1

    f = outer()
    y.mul_(2)
    return f()


#: call sm(A(3, 4))
def sm(x):
    y = x * 1.5
    total = sum([x, x], y)
    total += 1
    return total + y


#: call sm2(A(3, 4))
def sm2(x):
    y = x * 1.5
    total = sum([], y)
    total += 1
    return total + y
