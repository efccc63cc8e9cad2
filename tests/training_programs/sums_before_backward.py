"""Losses are added up as ``loss.data`` or ``loss.detach()`` between the loss and its backward."""

import numpy as np
import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))


def train(model, data, optimizer, criterion):
    total, other, correct = 0, 0.0, 0
    for x, y in data:
        out = model(x)
        loss = criterion(out, y)
        total += loss.data
        other += loss.detach() * len(x)
        correct += (out.data.max(1)[1] == y.data).sum()
        model.zero_grad()
        loss.backward()
        optimizer.step()
    return [total.item(), other.item(), correct.item()]


def run(model):
    rng = np.random.RandomState(3)
    data = [
        (
            torch.from_numpy(rng.randn(6, 5).astype(np.float32)),
            torch.from_numpy(rng.randint(0, 3, 6)),
        )
        for _ in range(4)
    ]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    return {"sums": [train(model, data, optimizer, criterion) for _ in range(3)]}
