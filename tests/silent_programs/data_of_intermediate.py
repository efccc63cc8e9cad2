# The data of an intermediate is changed: torch changes the value and keeps the graph.
#: model Named() <- A(3,4)
#: model Assigned() <- A(3,4)
#: model Augmented() <- A(3,4)
#: model Items() <- A(3,4)
#: model OnSelf() <- A(3,4)
#: model InList() <- A(3,4)
#: model Helper() <- A(3,4)
#: model Quiet() <- A(3,4)
#: model Leaf() <- A(3,4)
#: model Cut() <- A(3,4)
#: model Input() <- A(3,4)
import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)


class Named(Base):
    def forward(self, x):
        out = torch.tanh(self.fc(x)) * 2
        view = out.data
        view.add_(1.0)
        return out * out


class Assigned(Base):
    def forward(self, x):
        h = self.fc(x)
        h.data = h.data * 3
        return h * h


class Augmented(Base):
    def forward(self, x):
        h = self.fc(x)
        h.data *= 3
        return h * h


class Items(Base):
    def forward(self, x):
        h = self.fc(x)
        h.data[:, 0] = 0.0
        return h * h


class OnSelf(Base):
    def forward(self, x):
        self.h = self.fc(x)
        self.h.data.mul_(2.0)
        return self.h * self.h


class InList(Base):
    def forward(self, x):
        hs = [self.fc(x), x * 2]
        for h in hs:
            h.data.clamp_(-0.5, 0.5)
        return hs[0] * hs[1] * hs[0]


def squash(t):
    t.data.clamp_(-0.5, 0.5)
    return t


class Helper(Base):
    def forward(self, x):
        h = squash(self.fc(x))
        return h * h


class Quiet(Base):
    def forward(self, x):
        h = self.fc(x)
        with torch.no_grad():
            h.mul_(2.0)
        return h + x


class Leaf(Base):
    def forward(self, x):
        noise = torch.zeros(3, 4)
        noise.data.fill_(0.5)
        noise.data[0] = 2.0
        return self.fc(x) * noise


class Cut(Base):
    def forward(self, x):
        with torch.no_grad():
            gate = torch.sigmoid(self.fc(x))
        gate.data.mul_(2.0)
        return x * gate


class Input(Base):
    def forward(self, x):
        y = x * 2
        y.data.clamp_(min=0)
        return self.fc(y)
