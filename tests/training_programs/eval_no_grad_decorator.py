"""In: a model. Out: its losses: evaluation under a decorator, loss by a function, each epoch."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, n=6, m=3):
        super().__init__()
        self.fc1 = nn.Linear(n, 12)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(12, m)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        return self.fc2(0.5 * x if self.training else self.drop(x))


def batches(k=6, seed=0):
    rng = np.random.RandomState(seed)
    found = []
    for _ in range(k):
        x = rng.randn(8, 6).astype(np.float32)
        found.append((torch.from_numpy(x), torch.from_numpy(np.argmax(x[:, :3], 1))))
    return found


def build():
    return Net()


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    total, right, n = 0.0, 0, 0
    for x, y in data:
        out = model(x)
        total += F.cross_entropy(out, y, reduction="sum").item()
        right += out.argmax(1).eq(y).sum().item()
        n += y.size(0)
    return total / n, right / n


def run(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _epoch in range(4):
        model.train()
        for x, y in batches(6):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        losses += list(evaluate(model, batches(3, 1)))
    return {"losses": losses}
