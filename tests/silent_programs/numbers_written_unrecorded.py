# What a block without gradients writes into a Tensor, a list or an object is numbers, in its place.
#: model Rows() <- A(4,6)
#: model Kept() <- A(4,6)
#: model Summed() <- A(4,6)
#: model Listed() <- A(4,6)
#: model Boxed() <- A(4,6)
#: model Pushed() <- A(4,6)
import torch
import torch.nn as nn


class Rows(nn.Module):
    def forward(self, x):
        out = torch.zeros(4, 6)
        with torch.no_grad():
            out[0] = x[0]
            out[1:3] += x[1:3]
        return out * x


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = torch.zeros(6)
        self.hist = [torch.zeros(6)]

    def update(self, x):
        self.v = self.v * 0.9 + x.mean(0)
        self.hist[0] = x.sum(0)

    def forward(self, x):
        with torch.no_grad():
            self.update(x)
        return x * self.v + self.hist[0]


class Summed(nn.Module):
    def forward(self, x):
        acc = torch.zeros(6)
        with torch.no_grad():
            for r in x:
                acc.add_(r)
                acc.mul_(r.abs())
        return x * acc


class Listed(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            outs = [torch.zeros(6)]
            outs[0] += x.mean(0)
            outs[-1].sub_(x.std())
        return x * outs[0]


class Box:
    def __init__(self):
        self.sum = torch.zeros(6)
        self.n = 0

    def add(self, v):
        self.sum += v
        self.n += 1

    def put(self, v):
        self.sum.add_(v)


class Boxed(nn.Module):
    def forward(self, x):
        box = Box()
        with torch.no_grad():
            box.add(x.mean(0))
            box.put(x[0])
        return x * box.sum / box.n


class Pushed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("q", torch.zeros(4, 6), persistent=False)

    @torch.no_grad()
    def push(self, x):
        self.q[:2] = x[:2]
        self.q[2:] += x[2:]

    def forward(self, x):
        self.push(x)
        return x * self.q
