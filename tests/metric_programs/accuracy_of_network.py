"""In: a model. Out: losses and accuracies: an evaluation that asks the network for no loss."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes=7):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        x = self.body(x)
        return self.head(0.5 * x if self.training else x)


def loader(rows, seed):
    rng = np.random.RandomState(seed)
    x = rng.randn(rows, 5).astype(np.float32)
    y = rng.randint(0, 7, rows)
    x[:, 0] += y
    return DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), batch_size=8)


def build():
    return Net()


def train(model, data, criterion, optimizer):
    model.train()
    for x, y in data:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def evaluate(model, data, device):
    correct = total = 0
    model.eval()
    with torch.no_grad():
        for images, labels in data:
            images, labels = images.to(device), labels.to(device)
            outputs = model(images)
            _, predicted = torch.max(outputs.data, 1)
            total += labels.size(0)
            correct += (predicted == labels).sum().item()
    return 100 * correct / total


def run(model):
    data, held_out = loader(40, 1), loader(20, 2)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _epoch in range(5):
        found.append(train(model, data, criterion, optimizer))
        found.append(evaluate(model, held_out, torch.device("cpu")))
    return {"found": found}
