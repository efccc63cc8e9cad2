"""A small classifier: one network, one loss, one optimizer, a step for every batch."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 4 * 4, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv(x))), 2)
        return self.fc(x.flatten(1))


def digits(count, seed):
    """Images whose class shows as a bright row."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 3, count)
    images = rng.randn(count, 1, 8, 8).astype(np.float32) * 0.5
    for image, label in zip(images, labels):
        image[0, 2 * label + 1] += 0.3
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64)))


def train(model, loader, criterion, optimizer, epoch, log_interval=4):
    model.train()
    losses = []
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if batch_idx % log_interval == 0:
            print(f"epoch {epoch} [{batch_idx}/{len(loader)}] loss {loss.item():.4f}")
    return losses


def build():
    return Classifier()


def run(model, epochs=3):
    loader = DataLoader(digits(80, seed=0), batch_size=10, shuffle=False)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    losses = []
    for epoch in range(epochs):
        losses += train(model, loader, criterion, optimizer, epoch)
        scheduler.step()
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(1)
    run(build(), args.epochs)
