"""In: two networks. Out: their losses; both steps bind the same names, and ask for a shape."""

import numpy as np
import torch
import torch.nn as nn


class Judge(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.output_shape = (1, size // 2)
        self.body = nn.Sequential(nn.Linear(size, 8), nn.Tanh(), nn.Linear(8, size // 2))

    def forward(self, x):
        return self.body(x)[:, None]


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.maker = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 6))
        self.judge = Judge(6)


def build():
    return Both()


def run(model: Both):
    rng = np.random.RandomState(0)
    maker, judge = model.maker, model.judge
    criterion = nn.MSELoss()
    first = torch.optim.SGD(maker.parameters(), lr=0.2, momentum=0.5)
    second = torch.optim.SGD(judge.parameters(), lr=0.2, momentum=0.5)
    losses = []
    for _ in range(8):
        real = torch.from_numpy(rng.randn(5, 6).astype(np.float32))
        noise = torch.from_numpy(rng.randn(5, 3).astype(np.float32))

        first.zero_grad()
        valid = torch.ones(real.size(0), *judge.output_shape)
        fake = torch.zeros(real.size(0), *judge.output_shape)
        made = maker(noise)
        pred = judge(made)
        real_pred = judge(real).detach()
        loss = criterion(pred - real_pred.mean(0, keepdim=True), valid)
        loss.backward()
        first.step()
        losses.append(loss.item())

        second.zero_grad()
        real_pred = judge(real)
        pred = judge(made.detach())
        loss = criterion(real_pred - pred.mean(0, keepdim=True), valid)
        loss = (loss + criterion(pred - real_pred.mean(0, keepdim=True), fake)) / 2
        loss.backward()
        second.step()
        losses.append(loss.item())
    return {"losses": losses}
