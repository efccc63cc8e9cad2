"""In: a model. Out: its losses: backward and step in a method of their own."""

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


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.losses = []

    def optimize(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def train(self, data):
        self.model.train()
        for x, y in data:
            out = self.model(x)
            loss = self.criterion(out, y)
            self.optimize(loss)
            self.losses.append(loss.item())


def run(model):
    trainer = Trainer(model, 0.2)
    trainer.train(batches(12))
    return {"losses": trainer.losses}
