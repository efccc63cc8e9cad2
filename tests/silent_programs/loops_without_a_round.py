# A loop without a round leaves a name the tensor that it had; a Sequential begins in place.
#: call branches(2, A(1, 4, 3, 3))
#: call branches(1, A(1, 4, 3, 3))
#: call stack(2, A(2, 4))
#: call stack(0, A(2, 4))
#: call pyramid(A(1, 4, 3, 3))
#: call leading("plain", A(1, 4, 3, 3))
#: call leading("residual", A(1, 4, 3, 3))
#: call leading("before", A(1, 4, 3, 3))
#: call leading("held", A(1, 4, 3, 3))
#: call leading("itself", A(1, 4, 3, 3))
#: call leading("leaky", A(1, 4, 3, 3))
#: call leading("chosen", A(1, 4, 3, 3))
import torch
from torch import nn


class Branches(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        fused = []
        for i in range(2):
            y = x[0] if i == 0 else x[0] * 2
            for j in range(1, self.count):
                y = y + x[j]
            fused.append(self.relu(y))
        return torch.stack(fused).sum() + x[0].sum()


def branches(count, x):
    return Branches(count)([x + j for j in range(count)])


class Stack(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList([nn.Tanh() for _ in range(count)])

    def forward(self, x):
        y = x
        for number, layer in enumerate(self.layers):
            if number == 5:
                continue
            y = layer(y)
        y += 1
        return y * x


def stack(count, x):
    return Stack(count)(x * 2)


def pyramid(x):
    parts = [x * 2, x * 3]
    y = parts[0]
    for part in parts[1:]:
        y = y + part
    y.mul_(2)
    return y + parts[0]


class Leading(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.ReLU(inplace=True), nn.AvgPool2d(3, 1, 1))
        self.act = nn.Sequential(nn.ReLU(inplace=True))
        self.leaky = nn.Sequential(nn.LeakyReLU(0.5, inplace=True), nn.AvgPool2d(3, 1, 1))

    def forward(self, how, x):
        x = x * 2
        if how == "plain":
            return self.block(x)
        if how == "residual":
            return x + self.block(x) * 2
        if how == "before":
            return x.sum() + self.block(x)
        if how == "held":
            held = x.view(-1)
            y = x + self.block(x)
            return y.sum() + held.sum()
        if how == "itself":
            y = self.act(x)
            y += 1
            return x
        if how == "leaky":
            return x + self.leaky(x)
        return x + (self.block(x) if x.shape[0] > 5 else x)


def leading(how, x):
    return Leading()(how, x)
