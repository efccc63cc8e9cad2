"""In: a model. Out: its losses under averaged weights, which stand in and are taken back."""

import numpy as np
import torch
import torch.nn as nn


class EMA:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {}
        self.backup = {}

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                new_average = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                self.shadow[name] = new_average.clone()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.backup
                param.data = self.backup[name]
        self.backup = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 8)
        self.fc2 = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc2(torch.sigmoid(self.fc1(x)))


def build():
    return Net()


def run(model):
    rng = np.random.RandomState(28)
    loader = [
        (
            torch.from_numpy(rng.randn(8, 5).astype(np.float32)),
            torch.from_numpy(rng.randint(0, 2, 8)),
        )
        for _ in range(3)
    ]
    ema = EMA(model, 0.9)
    ema.register()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    log = []
    for _epoch in range(3):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            ema.update()
        ema.apply_shadow()
        model.eval()
        with torch.no_grad():
            log.append(sum(criterion(model(x), y).item() for x, y in loader))
        ema.restore()
        with torch.no_grad():
            log.append(sum(criterion(model(x), y).item() for x, y in loader))
    return {"log": log}
