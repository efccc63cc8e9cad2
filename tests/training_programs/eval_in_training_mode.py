"""In: a model. Out: its losses: losses in training mode, without gradients: nothing switches."""

import numpy as np
import torch
import torch.nn as nn


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


def measure(model, data):
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    with torch.no_grad():
        for x, y in data:
            total += criterion(model(x), y).item()
    return total


def run(model):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _epoch in range(3):
        model.train()
        for x, y in batches(7):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        losses.append(measure(model, batches(2, 1)))
        model.eval()
        losses.append(measure(model, batches(2, 1)))
    return {"losses": losses}
