"""In: a model. Out: its losses: a function without a loop, which measures its batch on the way."""

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 6)
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


def train_batch(model, data, optimizer, criterion):
    model.train()
    images, targets = data
    scores = model(images)
    length = images.size(0)
    targets = targets.flatten()
    loss = criterion(scores.reshape(-1, 3), targets) * (1.0 + 1.0 / length)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def build():
    return Net()


def run(model):
    rng = np.random.RandomState(3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    losses = []
    for step in range(20):
        x = torch.from_numpy(rng.randn(3 + step % 2, 5, 4).astype(np.float32))
        y = torch.from_numpy(rng.randint(0, 3, (3 + step % 2, 5)))
        losses.append(train_batch(model, (x, y), optimizer, criterion))
    return {"losses": losses}
