"""In: a network whose kind decides whether a state goes from batch to batch. Out: its losses."""

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.rnn = nn.GRU(3, 4)
        self.out = nn.Linear(4, 2)

    def forward(self, x, hidden):
        y, hidden = self.rnn(x, hidden)
        return self.out(y), hidden


def repackage(hidden):
    return hidden.detach()


def build():
    return Net("GRU")


def branches(model, optimizer, xs, ys):
    criterion, losses = nn.MSELoss(), []
    hidden = torch.zeros(1, 2, 4)
    for x, y in zip(xs, ys, strict=True):
        optimizer.zero_grad()
        if model.kind == "Linear":
            out = model.out(x)
        else:
            hidden = repackage(hidden)
            out, hidden = model(x, hidden)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def in_the_call(model, optimizer, xs, ys):
    criterion, losses = nn.MSELoss(), []
    hidden = torch.zeros(1, 2, 4)
    for x, y in zip(xs, ys, strict=True):
        optimizer.zero_grad()
        out, hidden = model(x, hidden.detach())
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(model):
    rng = np.random.RandomState(1)
    xs, ys = (torch.from_numpy(rng.randn(5, 3, 2, n).astype(np.float32)) for n in (3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    first = branches(model, optimizer, xs, ys)
    return {"first": first, "second": in_the_call(model, optimizer, xs, ys)}
