# A Tensor is added to, then a part of it is set: Graph mode forgets the second in the gradient.
#: model Minus() <- A(2,3,4)
#: model Loop() <- A(2,3,4)
#: model Helper() <- A(2,3,4)
#: model Returned() <- A(2,3,4)
#: model Branch() <- A(2,3,4)
#: model Chain() <- A(2,3,4)
#: model InList() <- A(2,3,4)
#: model Method() <- A(2,3,4)
#: model ItemFirst() <- A(2,3,4)
#: model InItem() <- A(2,3,4)
#: model Other() <- A(2,3,4)
#: model Viewed() <- A(2,3,4)
import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.zeros(1, 3, 4))


class Minus(Base):
    def forward(self, x):
        h = torch.cat((x, x))
        h -= self.pos
        h *= 2
        h[..., 1] = h[..., 2] * 3
        return h


class Loop(Base):
    def forward(self, x):
        h = x * 1.0
        for i in range(3):
            h += self.pos * i
            h[:, i] = h[:, i] * 2
        return h


def double_first(t):
    t[:, 0] = t[:, 0] * 2
    return t


class Helper(Base):
    def forward(self, x):
        h = x * 1.0
        h += self.pos
        h = double_first(h)
        return h


def shifted(t, by):
    t += by
    return t


class Returned(Base):
    def forward(self, x):
        h = shifted(x * 1.0, self.pos)
        h[:, 0] = h[:, 1] * 2
        return h


class Branch(Base):
    def forward(self, x):
        h = x * 1.0
        if self.training:
            h += self.pos
        else:
            h = h - 1
        h[0] = 0.5
        return h * h


class Chain(Base):
    def forward(self, x):
        h = x * 1.0
        h += self.pos
        g = h
        g[:, 2] = 0.0
        return g


class InList(Base):
    def forward(self, x):
        hs = []
        for k in range(2):
            h = x * (k + 1)
            h += self.pos
            hs.append(h)
        last = hs[-1]
        last[:, 0] = last[:, 0] * 2
        return last


class Method(Base):
    def shift(self, t):
        t /= self.pos + 1.5
        return t

    def forward(self, x):
        h = self.shift(x * 2)
        h[:, 0] = h[:, 0] * 2
        return h


class ItemFirst(Base):
    def forward(self, x):
        h = x * 1.0
        h[:, 0] = 0.0
        h += self.pos
        h[:, 1] = 0.0
        return h


class InItem(Base):
    def forward(self, x):
        h = x * 1.0
        h += self.pos
        h[:, 0] += 1.0
        h[:, 0] *= 3.0
        return h


class Other(Base):
    def forward(self, x):
        h = x * 1.0
        h += self.pos
        out = torch.zeros(2, 3, 4)
        out[:, 0] = h[:, 1]
        out += h
        return out


class Viewed(Base):
    def forward(self, x):
        h = x * 1.0
        h += self.pos
        h = h.view(6, 4)
        h[0] = h[1] * 2
        return h
