# A buffer takes a value with a gradient, and is read behind that.
#: model Stored() <- A(5,3)
#: model Chained() <- A(5,3)
#: model Copied() <- A(5,3)
#: model Items() <- A(5,3)
#: model Child() <- A(5,3)
#: model Deep() <- A(5,3)
#: model Cell() <- A(5,3)
#: model Twice() <- A(5,3)
#: model Detached() <- A(5,3)
#: model Quiet() <- A(5,3)
#: model NotRead() <- A(5,3)
#: model Outside() <- A(5,3)
import torch
import torch.nn as nn


class Stored(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    def note(self, x):
        self.m = 0.9 * self.m + 0.1 * x.mean(0)

    def forward(self, x):
        self.note(x)
        return x * self.m


class Chained(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    def forward(self, x):
        self.m.mul_(0.9).add_(x.mean(0))
        return x - self.m


class Copied(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    def forward(self, x):
        self.m.copy_(x.sum(0))
        centre = self.m
        return x - centre


class Items(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(2, 3))

    def forward(self, x):
        self.m[0] = x.mean(0)
        return x - self.m[0]


class Child(nn.Module):
    def __init__(self):
        super().__init__()
        self.stats = Holder()

    def forward(self, x):
        self.stats.note(x)
        return x * self.stats.m


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    def note(self, x):
        self.m += x.mean(0)

    def read(self):
        return self.m


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.stats = Holder()

    def prepare(self, x):
        self.stats.note(x)

    def forward(self, x):
        self.prepare(x)
        return x * self.stats.read()


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("v", torch.zeros(3))

    def step(self, x):
        spike = torch.sigmoid(self.v - 1)
        self.v = self.v * 0.5 + x
        return spike

    def forward(self, x):
        out = 0.0
        for t in range(3):
            out = out + self.step(x[t])
        return out


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    def forward(self, x):
        if self.training:
            self.m = x.mean(0)
        return (x - self.m) / (1 + self.m.abs())


class Detached(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    def note(self, x):
        self.m += x.detach().mean(0)

    def forward(self, x):
        self.note(x)
        return x - self.m


class Quiet(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    @torch.no_grad()
    def note(self, x):
        self.m.mul_(0.9).add_(x.mean(0), alpha=0.1)

    def forward(self, x):
        self.note(x)
        return x - self.m


class NotRead(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    def forward(self, x):
        if self.training:
            mean = x.mean(0)
            self.m = (0.9 * self.m + 0.1 * mean).detach()
        else:
            mean = self.m
        return x - mean


def note(holder, x):
    holder.m = holder.m + x.mean(0)


class Outside(nn.Module):
    def __init__(self):
        super().__init__()
        self.stats = Holder()

    def forward(self, x):
        note(self.stats, x)
        return x * self.stats.m
