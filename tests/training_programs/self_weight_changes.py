"""In: a model. Out: its losses: a method changes the weight of a loss."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


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


class Trainer:
    def __init__(self, model):
        self.model = model
        self.weight = 0.0
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        self.losses = []

    def anneal(self):
        self.weight += 0.1

    def epoch(self, data):
        for x, y in data:
            out = self.model(x)
            loss = F.cross_entropy(out, y) + self.weight * out.pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())


def run(model):
    t = Trainer(model)
    for e in range(4):
        t.epoch(batches(5, e))
        t.anneal()
    return {"losses": t.losses}
