"""In: a model. Out: its losses: a warm-up that steps with every batch, an exit by continue."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, n=6, m=3):
        super().__init__()
        self.fc1 = nn.Linear(n, 12)
        self.fc2 = nn.Linear(12, m)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        return self.fc2(0.5 * x if self.training else x)


def loader(rows, seed):
    rng = np.random.RandomState(seed)
    x = rng.randn(rows, 6).astype(np.float32)
    y = np.argmax(x[:, :3], 1)
    return DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), batch_size=8)


def build():
    return Net()


def run(model):
    data = loader(40, 1)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 7))
    losses, step = [], 0
    model.train()
    for epoch in range(5):
        for x, y in data:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            warm.step()
            step += 1
            losses.append(loss.item() * warm.get_last_lr()[0])
        if epoch % 2 == 0:
            continue
        losses.append(float(step))
    return {"losses": losses}
