# An iterator that is used up, members of other objects, one list as two items: stopped in graph mode.
#: model Twice() <- A(2,4)
#: model Counted() <- A(2,4)
#: model Rows() <- A(2,4)
#: model Modes() <- A(2,4)
#: model Delegate() <- A(2,4)
import enum

import torch
from torch import nn


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        outs = (layer(x) for layer in self.layers)
        return sum(outs) + sum(outs, torch.zeros_like(x)) * 5


class Config:
    scale = 1.0


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()

    def forward(self, x):
        self.config.scale += 1
        return x * self.config.scale


class Rows(nn.Module):
    def forward(self, x):
        rows = [[]] * 2
        rows[0].append(x)
        return x * len(rows[1])


class Mode(enum.Enum):
    FAST = 2


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = Mode.FAST

    @property
    def gain(self):
        return 2.0

    @gain.setter
    def gain(self, value):
        self.mode = value

    def forward(self, x, /, y=None):
        return x * self.gain if self.mode is Mode.FAST and y is None else x


class Wrap(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.net, name)

    def forward(self, x):
        return self.net(x) + self.weight.sum()


class Delegate(nn.Module):
    def __init__(self):
        super().__init__()
        self.wrap = Wrap(nn.Linear(4, 4))

    def forward(self, x):
        return self.wrap(x) + self.wrap.bias
