# A method that changes its tensor is named by a text, a class or a function of Python's.
import functools
import operator
from operator import imul

import torch


#: call o1(A(3, 4))
def o1(x):
    y = x * 1.5
    operator.iadd(y, x)
    return y + 1


#: call o2(A(3, 4))
def o2(x):
    y = x * 1.5
    z = imul(y, 2)
    return y + z


#: call o3(A(3, 4))
def o3(x):
    y = x * 1.5
    operator.setitem(y, 0, 3.0)
    return y + 1


#: call o4(A(3, 4))
def o4(x):
    y = x * 1.5
    getattr(y, "mul_")(2)
    return y + 1


#: call o6(A(3, 4))
def o6(x):
    y = x * 1.5
    type(y).mul_(y, 2)
    return y + 1


#: call o7(A(3, 4))
def o7(x):
    y = x * 1.5
    y.__iadd__(x)
    return y + 1


#: call o8(A(3, 4))
def o8(x):
    y = x * 1.5
    y.__setitem__(0, 3.0)
    y.__imul__(2)
    return y + 1


#: call o9(A(3, 4))
def o9(x):
    y = x * 1.5
    torch.Tensor.__iadd__(y, x)
    return y + 1


#: call o10(A(3, 4))
def o10(x):
    y = x * 1.5
    fn = y.mul_
    fn(2)
    return y + 1


#: call o15(A(3, 4))
def o15(x):
    y = x * 1.5
    fs = [y.add_, y.mul_]
    [f(2) for f in fs]
    return y + 1


#: call rd2(A(3, 4))
def rd2(x):
    y = x * 1.5
    total = functools.reduce(operator.iadd, [y, x, x])
    return total + y


#: call mc(A(3, 4))
def mc(x):
    y = x * 1.5
    operator.methodcaller("mul_", 2)(y)
    return y + 1
