# Constants made in construct and written in place.
#: model Arange() <- A(3)
#: model ArangeClone() <- A(3)
#: model Zeros() <- A(3)
#: model Literal() <- A(3)
#: model View() <- A(3)
#: model Item() <- A(3)
#: model ItemAug() <- A(3)
#: model Func() <- A(3)
#: model Loop() <- A(3)
#: model Full() <- A(3)
#: model Sub() <- A(3)
#: model Eye() <- A(3,3)
#: model Lin() <- A(3)
import torch
import torch.nn as nn


class Arange(nn.Module):
    def forward(self, x):
        t = torch.arange(3)
        t += 1
        return x * t


class ArangeClone(nn.Module):
    def forward(self, x):
        t = torch.arange(3).clone()
        t += 1
        return x * t


class Zeros(nn.Module):
    def forward(self, x):
        t = torch.zeros(3)
        t += 1
        t *= 2
        return x * t


class Literal(nn.Module):
    def forward(self, x):
        t = torch.tensor([1.0, 2.0, 3.0])
        t += 1
        return x * t


class View(nn.Module):
    def forward(self, x):
        t = torch.arange(3).view(3, 1).float()
        t += 1
        return x * t


class Item(nn.Module):
    def forward(self, x):
        t = torch.zeros(3)
        t[0] = t[0] + 5.0
        return x * t


class ItemAug(nn.Module):
    def forward(self, x):
        t = torch.arange(3)
        t[0] += 5
        t[1:] *= 2
        return x * t


def bump(t):
    t += 1
    return t


class Func(nn.Module):
    def forward(self, x):
        return x * bump(torch.arange(3))


class Loop(nn.Module):
    def forward(self, x):
        t = torch.ones(3)
        for i in range(3):
            t *= 2
            x = x + t
        return x


class Full(nn.Module):
    def forward(self, x):
        t = torch.full((3,), 2.0)
        t -= 0.5
        return x * t


class Sub(nn.Module):
    def forward(self, x):
        t = torch.arange(6)[:3]
        t += 1
        return x * t


class Eye(nn.Module):
    def forward(self, x):
        t = torch.eye(3)
        t -= 1
        t[0, 0] += 3
        return x @ t


class Lin(nn.Module):
    def forward(self, x):
        t = torch.linspace(0, 1, 3)
        t += 1
        return x * t
