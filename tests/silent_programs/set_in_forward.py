# Parameters that forward sets by its first data, and new ones that take their place.
#: model ActNorm() <- A(6,3)
#: model Item() <- A(6,3)
#: model Method() <- A(6,3)
#: model Scale() <- A(6,3)
#: model Replaced() <- A(6,3)
#: model Codes() <- A(6,3)
#: model Flagged() <- A(6,3)
#: model NoGrad() <- A(6,3)
import torch
import torch.nn as nn


class ActNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 3))
        self.logs = nn.Parameter(torch.zeros(1, 3))
        self.register_buffer("done", torch.tensor(0, dtype=torch.uint8))

    def forward(self, x):
        if self.done.item() == 0:
            with torch.no_grad():
                mean = x.mean(0, keepdim=True)
                std = (x - mean).pow(2).mean(0, keepdim=True).sqrt()
                self.bias.data.copy_(-mean)
                self.logs.data.copy_(torch.log(1 / (std + 1e-6)))
                self.done.fill_(1)
        return (x + self.bias) * self.logs.exp()


class Item(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(3))
        self.register_buffer("ready", torch.zeros(1))

    def forward(self, x):
        if self.training and not self.ready[0]:
            self.loc.data = x.mean(0).detach()
            self.ready[0] = 1
        return x - self.loc


class Method(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.ready = False

    def set(self, x):
        with torch.no_grad():
            self.scale.copy_(1 / (x.std(0) + 1e-6))

    def forward(self, x):
        self.set(x)
        return x * self.scale


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.scale.data = 1 / (x.data.std(0) + 1e-6)
        return (x * self.scale).tanh()


class Replaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.w = nn.Parameter(self.w * 0.9)
        return x * self.w.detach()


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)

    def forward(self, x):
        near = (x @ self.table.weight.t()).argmax(1)
        self.table.weight = nn.Parameter(self.table.weight * 0.5)
        return x + self.table(near).detach()


class Flagged(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps += 1
        if self.steps == 1:
            self.gain.data.copy_(x.abs().mean(0))
        return x * self.gain


class NoGrad(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            self.fc.weight.div_(self.fc.weight.norm(dim=1, keepdim=True))
            self.fc.bias.zero_()
        return self.fc(x) ** 2
