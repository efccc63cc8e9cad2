"""In: a model. Out: its losses: evaluation between epochs."""

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, n=6, m=3):
        super().__init__()
        self.fc1 = nn.Linear(n, 12)
        self.fc2 = nn.Linear(12, m)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def batches(k=6, seed=0):
    rng = np.random.RandomState(seed)
    found = []
    for _ in range(k):
        x = rng.randn(8, 6).astype(np.float32)
        found.append((torch.from_numpy(x), torch.from_numpy(np.argmax(x[:, :3], 1))))
    return found


def build():
    return Net()


def evaluate(model, criterion, data):
    model.eval()
    total, right, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in data:
            out = model(x)
            loss = criterion(out, y)
            total += loss.item() * x.size(0)
            right += out.argmax(1).eq(y).sum().item()
            n += y.size(0)
    model.train()
    return total / n, right / n


def run(model):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _epoch in range(3):
        model.train()
        for x, y in batches(6):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
        losses += list(evaluate(model, criterion, batches(3, 1)))
    return {"losses": losses}
