"""In: a model. Out: its losses: a global counter decides on the loss."""

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


step_count = 0
history = []


def train(model, optimizer, data):
    global step_count
    for x, y in data:
        out = model(x)
        loss = F.cross_entropy(out, y)
        step_count += 1
        history.append(step_count)
        if step_count % 3 == 0:
            loss = loss * 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def run(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    losses = [train(model, optimizer, batches(4, e)) for e in range(5)]
    return {"losses": losses, "steps": step_count, "h": history}
