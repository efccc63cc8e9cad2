"""In: a model. Out: its losses: a Trainer that validates, with a confusion matrix on the host."""

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, n=6, m=3):
        super().__init__()
        self.fc1 = nn.Linear(n, 12)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(12, m)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        return self.fc2(0.5 * x if self.training else self.drop(x))


def batches(k=6, seed=0):
    rng = np.random.RandomState(seed)
    found = []
    for _ in range(k):
        x = rng.randn(8, 6).astype(np.float32)
        found.append((torch.from_numpy(x), torch.from_numpy(np.argmax(x[:, :3], 1))))
    return found


def build():
    return Net()


class Trainer:
    def __init__(self, model):
        self.model = model
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
        self.matrix = np.zeros((3, 3), dtype=np.int64)

    def train_epoch(self, data):
        self.model.train()
        for x, y in data:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()

    def validate(self, data):
        self.model.eval()
        total = 0.0
        with torch.inference_mode():
            for x, y in data:
                logits = self.model(x)
                loss = self.criterion(logits, y)
                total += loss.item()
                for t, p in zip(y.tolist(), logits.argmax(1).tolist(), strict=True):
                    self.matrix[t, p] += 1
        return total


def run(model):
    trainer = Trainer(model)
    totals = []
    for _ in range(4):
        trainer.train_epoch(batches(5))
        totals.append(trainer.validate(batches(4, 1)))
    matrix = trainer.matrix
    iou = np.diag(matrix) / (matrix.sum(0) + matrix.sum(1) - np.diag(matrix))
    return {"totals": totals, "matrix": matrix.tolist(), "miou": float(iou.mean())}
