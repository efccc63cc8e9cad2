"""In: a model. Out: loss and confusion matrix of several evaluations, on numpy arrays."""

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


@torch.no_grad()
def evaluate(model, data, criterion, num_classes):
    model.eval()
    losses = []
    confusion = np.zeros((num_classes, num_classes), dtype=np.int64)
    for x, y in data:
        out = model(x)
        loss = criterion(out, y)
        losses.append(loss.item())
        for t, p in zip(y.tolist(), out.argmax(1).tolist(), strict=True):
            confusion[t, p] += 1
    recall = np.diag(confusion) / np.maximum(confusion.sum(1), 1)
    return np.mean(losses), confusion, recall.mean()


def run(model):
    data, held_out = loader(40, 1), loader(20, 2)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _epoch in range(5):
        found.append(train(model, data, criterion, optimizer))
        loss, confusion, recall = evaluate(model, held_out, criterion, 7)
        found += [float(loss), float(recall), *confusion.flatten().tolist()]
    return {"found": found}
