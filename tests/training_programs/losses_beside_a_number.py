"""In: a model of several heads. Out: its losses, in a list that is bound beside a number."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 8)
        self.heads = nn.ModuleList([nn.Linear(8, 1) for _ in range(3)])

    def forward(self, x):
        return [head(torch.tanh(self.trunk(x))) for head in self.heads]


def build():
    return Heads()


def run(model):
    rng = np.random.RandomState(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _ in range(4):
        x = torch.from_numpy(rng.randn(6, 4).astype(np.float32))
        y = torch.from_numpy(rng.randn(6, 3).astype(np.float32))
        optimizer.zero_grad()
        parts, weight = [], 1.0
        for i, out in enumerate(model(x)):
            parts.append(weight * F.mse_loss(out[:, 0], y[:, i]))
            weight = weight * 0.5
        loss = torch.stack(parts).sum()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return {"losses": found}
