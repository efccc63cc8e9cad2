"""In: a model. Out: top-1 and top-5 hits of several evaluations, by an eval Cell of its own."""

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


def accuracy(output, target, topk=(1, 5)):
    _, pred = output.topk(max(topk), 1, True, True)
    hits = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
    return [hits[:k].reshape(-1).float().sum(0).item() for k in topk]


def validate(model, val_loader, criterion):
    model.eval()
    top1, top5, seen, total_loss = 0.0, 0.0, 0, 0.0
    with torch.no_grad():
        for _, (images, target) in enumerate(val_loader):
            output = model(images)
            loss = criterion(output, target) + 0.01 * output.abs().mean()
            first, five = accuracy(output, target)
            top1 += first
            top5 += five
            seen += images.size(0)
            total_loss += loss.item()
    return top1 / seen, top5 / seen, total_loss / len(val_loader)


def run(model):
    data, held_out = loader(40, 1), loader(20, 2)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _epoch in range(5):
        found.append(train(model, data, criterion, optimizer))
        found += list(validate(model, held_out, criterion))
    return {"found": found}
