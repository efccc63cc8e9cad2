# Helpers of other modules change what they are given.
#: model One() <- A(2,4)
#: model Two() <- A(2,4)
#: model Three() <- A(2,4)
#: model Four() <- A(2,4)
#: model Five() <- A(2,4)
#: model Six() <- A(2,4)
#: model Seven() <- A(2,4)
import torch
import torch.nn as nn
import helpers as h
from helpers import add_one, Box
from tools import scale as times


class One(nn.Module):
    def forward(self, x):
        y = x * 2
        add_one(y)
        return y


class Two(nn.Module):
    def forward(self, x):
        y = x * 2
        h.first(y.view(-1))
        return y


class Three(nn.Module):
    def forward(self, x):
        y = x * 2
        times(y, 3)
        return y * x


class Four(nn.Module):
    def forward(self, x):
        y = x * 2
        h.through(y)
        return y


class Five(nn.Module):
    def forward(self, x):
        ys = [x * 2, x * 3]
        h.each(ys)
        return ys[0] + ys[1]


class Six(nn.Module):
    def forward(self, x):
        y = x * 2
        y = add_one(y)
        return y


class Seven(nn.Module):
    def __init__(self):
        super().__init__()
        self.box = Box()

    def forward(self, x):
        y = x * 2
        self.box.zero(y)
        return y
