"""Training with an evaluation after every epoch: loss, accuracy and a confusion matrix."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    """Points in two features; a third input says how sure the measurement is."""

    def __init__(self, count, seed):
        rng = np.random.RandomState(seed)
        self.labels = rng.randint(0, 3, count).astype(np.int64)
        self.points = (rng.randn(count, 2) + 2.0 * self.labels[:, None]).astype(np.float32)
        self.weights = rng.rand(count).astype(np.float32) + 0.5

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.points[index], self.weights[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.0))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    losses = []
    for points, weights, labels in loader:
        logits = model(points)
        loss = (criterion(logits, labels) * weights).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    total, correct, seen = 0.0, 0, 0
    confusion = np.zeros((3, 3), dtype=np.int64)
    for points, weights, labels in loader:
        logits = model(points)
        loss = (criterion(logits, labels) * weights).sum()
        total += loss.item()
        predicted = logits.argmax(dim=1)
        correct += (predicted == labels).sum().item()
        seen += labels.size(0)
        for p, t in zip(predicted.tolist(), labels.tolist()):
            confusion[t, p] += 1
    return total / seen, correct / seen, confusion


def build():
    return Net()


def run(model, epochs=4):
    train_loader = DataLoader(Points(72, seed=0), batch_size=12)
    valid_loader = DataLoader(Points(30, seed=1), batch_size=7)
    criterion = nn.CrossEntropyLoss(reduction="none")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    history = []
    for epoch in range(epochs):
        history += train_epoch(model, train_loader, criterion, optimizer)
        loss, accuracy, confusion = evaluate(model, valid_loader, criterion)
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}")
        history += [loss, accuracy, *confusion.flatten().tolist()]
    return history


if __name__ == "__main__":
    torch.manual_seed(0)
    run(build())
