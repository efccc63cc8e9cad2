# A function whose callers are not seen changes what it is passed: the object, or a view, which stops.
import torch
from torch import nn


def scaled(x):
    x.mul_(2).add_(1)
    x += 1
    return x.sigmoid_()


def normalized(tensor, mean, std):
    return tensor.sub_(mean).div_(std)


class Net(nn.Module):
    def forward(self, x):
        x.clamp_(-1.0, 1.0).mul_(2)
        x.cos_()
        return x.exp_()


def called(name, *args):
    return globals()[name](*args)


#: call whole(A(3, 4))
def whole(x):
    y = x * 1.5
    z = called("scaled", y)
    return z + y * 3


#: call whole2(A(3, 4))
def whole2(x):
    y = x * 1.5
    return called("normalized", y, 0.5, 2.0) + y * 3


#: call module(A(3, 4))
def module(x):
    y = x * 1.5
    return called("Net")(y) + y * 3


#: call part(A(3, 4))
def part(x):
    y = x * 1.5
    called("normalized", y[1:], 0.5, 2.0)
    return y * 3


#: call turned(A(3, 4))
def turned(x):
    y = x * 1.5
    called("normalized", y.t(), 0.5, 2.0)
    return y * 3


#: call flat(A(3, 4))
def flat(x):
    y = x * 1.5
    called("normalized", y.view(-1), 0.5, 2.0)
    return y * 3


#: call deep(A(3, 4))
def deep(x):
    y = x * 1.5
    called("normalized", y.unsqueeze(0), 0.5, 2.0)
    return y * 3
