"""In: a model. Out: its losses, in a dict of keys from settings; contexts that may do nothing."""

from contextlib import nullcontext

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 1)})
        self.criteria = {"a": nn.CrossEntropyLoss(), "b": nn.MSELoss()}

    def forward(self, x):
        h = torch.tanh(self.body(x))
        return {name: head(h) for name, head in self.heads.items()}

    def training_step(self, x, targets):
        out = self(x)
        return {k + "_loss": self.criteria[k](out[k], targets[k]) for k in self.criteria}


def build():
    return Net()


def run(model):
    rng = np.random.RandomState(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    amp = device.type == "cuda"
    ctx = torch.autocast(device_type=device.type, dtype=torch.float16) if amp else nullcontext()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(8):
        x = torch.from_numpy(rng.randn(8, 6).astype(np.float32))
        y = {
            "a": torch.from_numpy(rng.randint(0, 2, 8)),
            "b": torch.from_numpy(rng.randn(8, 1).astype(np.float32)),
        }
        with ctx:
            parts = model.training_step(x, y)
            total = parts["a_loss"] + 0.5 * parts["b_loss"]
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        losses += [value.item() for value in parts.values()]
        with torch.autocast(device_type=device.type, enabled=amp):
            loss = model(x)["a"].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}
