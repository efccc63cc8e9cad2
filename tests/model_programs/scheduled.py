"""In: a model. Out: its losses: a rate that falls with the epochs, a loss that is summed up."""

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


def train(model, data, epochs):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    history, rates = [], []
    for epoch in range(1, epochs + 1):
        model.train()
        running = 0.0
        for x, y in data:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item() * x.size(0)
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
        # the mean over all rows
        history.append(running / len(data.dataset))
        print(f"epoch {epoch}: {history[-1]:.4f}")
    return history, rates


def run(model):
    history, rates = train(model, loader(45, 1), 5)
    return {"history": history, "rates": rates}
