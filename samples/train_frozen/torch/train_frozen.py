"""Fine-tuning a head on a frozen backbone whose statistics stay as they are."""

import numpy as np
import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.features(x).mean(dim=(2, 3))


class Finetuned(nn.Module):
    def __init__(self, backbone, classes=3):
        super().__init__()
        self.backbone = backbone
        for param in self.backbone.parameters():
            param.requires_grad = False
        self.head = nn.Linear(8, classes)

    def train(self, mode=True):
        super().train(mode)
        # frozen: its running statistics are not to move either
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


def images(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        labels = rng.randint(0, 3, 8).astype(np.int64)
        x = (rng.randn(8, 1, 8, 8) * (1 + labels[:, None, None, None])).astype(np.float32)
        yield torch.from_numpy(x), torch.from_numpy(labels)


def build():
    return Finetuned(Backbone())


def run(model, steps=24):
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"{sum(p.numel() for p in trainable)} trainable weights")
    optimizer = torch.optim.SGD(trainable, lr=0.2, momentum=0.9, nesterov=True, weight_decay=1e-2)
    criterion = nn.CrossEntropyLoss()
    model.train()
    losses = []
    for inputs, labels in images(steps, seed=6):
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    print(run(build())[-1])
