# What a compiled method takes from its class: super(), class methods, truth, defaults, partials.
#: model Deep() <- A(2, 3)
#: model Mixed() <- A(2, 3)
#: model Calls() <- A(2, 3)
#: model Loops() <- A(2, 3)
#: script
import os
from functools import partial

import torch
import torch.nn as nn

SCALE = 2


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    @property
    def gain(self):
        return 3

    def pre(self, x):
        return x + 1

    def forward(self, x):
        return self.fc(self.pre(x))


class Middle(Base):
    @property
    def gain(self):
        return super().gain + 1

    def pre(self, x):
        return x * 2

    def forward(self, x):
        return super().pre(x) + super().forward(x) * self.gain


class Deep(Middle):
    def pre(self, x):
        return super().pre(x) - 7


class First:
    def pre(self, x):
        return super().pre(x) * 5


class Second:
    def pre(self, x):
        return super().pre(x) - 3


class Mixed(First, Second, Base):
    pass


def scaled(x, k=SCALE, b=0.0):
    return x * k + b


SCALE = 50


class Calls(nn.Module):
    factor = 2.0

    def __init__(self):
        super().__init__()
        self.steps = [partial(scaled, k=3.0), torch.tanh, partial(scaled, b=1.0)]
        self.empty = nn.Sequential()
        self.none = nn.ModuleDict()
        self.some = nn.Sequential(nn.ReLU())

    @classmethod
    def by(cls, n):
        return cls.factor * cls.plus(n)

    @staticmethod
    def plus(n):
        return n + 1

    def forward(self, x):
        first, second = partial(scaled, k=2.0), partial(scaled, k=5.0)
        x = first(x) + second(x) * 10
        for step in self.steps:
            x = step(x)
        if self.empty:
            x = x * 100
        if not self.none and self.some:
            x = x + 1
        return x * self.by(2) + scaled(x)


class Loops(nn.Module):
    def forward(self, x):
        made = []
        for i in range(3):
            def shifted(t, i=i):
                return t + i
            made.append(shifted)
        for f in made:
            x = f(x)
        for i in range(4):
            if i * i > 5:
                break
        else:
            x = x * 100
        n = 0
        while n < 5 and x.sum() < 40:
            x, n = x + 1, n + 1
        else:
            x = x + 0.5
        while x.sum() > -50 and n < 9:
            x, n = x - 1, n + 1
        if 3.25 in x:
            x = x + 10
        return x * round(x.shape[1] * 0.9), x[:, : round(0.6)]


class Told(nn.Module):
    heat = 1.0

    def forward(self, x):
        y = x * type(self).heat
        return y * 10 if os.environ.get("SILENT_FAST", "0") == "1" else y


net, x = Told(), torch.ones(2)
print(net(x).sum().item())
Told.heat = 4.0
print(net(x).sum().item())
os.environ["SILENT_FAST"] = "1"
print(net(x).sum().item())
