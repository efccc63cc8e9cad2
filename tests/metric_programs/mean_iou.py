"""In: a model. Out: mean IoU of several evaluations, on Tensors, in a Trainer."""

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


class Trainer:
    def __init__(self, model, num_classes):
        self.model = model
        self.num_classes = num_classes
        self.val_loader = loader(20, 2)

    def validate(self):
        self.model.eval()
        inter = torch.zeros(self.num_classes)
        union = torch.zeros(self.num_classes)
        with torch.no_grad():
            for x, y in self.val_loader:
                pred = self.model(x)
                pred = pred.argmax(dim=1)
                for c in range(self.num_classes):
                    hit, want = pred == c, y == c
                    inter[c] += (hit & want).sum().item()
                    union[c] += (hit | want).sum().item()
        iou = inter / union.clamp(min=1)
        return iou.mean().item(), inter.tolist()


def run(model):
    trainer = Trainer(model, 7)
    data = loader(40, 1)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _epoch in range(5):
        found.append(train(model, data, criterion, optimizer))
        iou, inter = trainer.validate()
        found += [iou, *inter]
    return {"found": found}
