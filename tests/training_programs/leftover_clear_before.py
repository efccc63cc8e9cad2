"""In: a model. Out: its losses: gradients cleared before each epoch, the last batches applied."""

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


def train_epoch(model, optimizer, data, accumulate):
    model.train()
    optimizer.zero_grad()
    losses = []
    for i, (x, y) in enumerate(data):
        loss = F.cross_entropy(model(x), y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(data):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def run(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    found = []
    for _epoch in range(4):
        found += train_epoch(model, optimizer, batches(5), 2)
    return {"losses": found}
