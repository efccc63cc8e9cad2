"""In: a step whose scaler is called with the loss, and returns early. Out: losses, norms."""

import numpy as np
import torch
from torch import nn


class Scaler:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)

    def __call__(self, loss, optimizer, weights=None, clip=None, create_graph=False, update=True):
        self.scaler.scale(loss).backward(create_graph=create_graph)
        if not update:
            return None
        self.scaler.unscale_(optimizer)
        size = torch.stack([p.grad.detach().norm(2) for p in weights if p.grad is not None]).norm(2)
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(weights, clip)
        self.scaler.step(optimizer)
        self.scaler.update()
        return size


def epoch(net, data, optimizer, scaler, every):
    losses = []
    optimizer.zero_grad()
    for i, (x, y) in enumerate(data):
        loss = nn.functional.mse_loss(net(x), y)
        losses.append(loss.item())
        loss = loss / every
        last = (i + 1) % every == 0
        size = scaler(loss, optimizer, weights=list(net.parameters()), clip=0.5, update=last)
        if last:
            optimizer.zero_grad()
            losses.append(size.item())
    return losses


def build():
    return nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 1))


def run(model):
    rng = np.random.RandomState(2)
    data = [
        (torch.tensor(rng.randn(5, 4)).float(), torch.tensor(rng.randn(5, 1)).float())
        for _ in range(6)
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scaler = Scaler()
    model.train()
    return {"losses": [epoch(model, data, optimizer, scaler, 2) for _ in range(3)]}
