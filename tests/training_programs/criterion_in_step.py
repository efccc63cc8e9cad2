"""In: a model. Out: losses of a step function that makes its criterion behind the forward."""

import numpy as np
import torch
import torch.nn as nn


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def step(model, optimizer, x, target):
    out = model(x)
    scaled = target * 0.5
    criterion = nn.SmoothL1Loss()
    loss = criterion(out, scaled)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
    optimizer.step()
    return loss.item()


def run(model):
    rng = np.random.RandomState(37)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    losses = []
    for _ in range(6):
        x = torch.from_numpy(rng.randn(5, 4).astype(np.float32))
        y = torch.from_numpy(rng.randn(5, 2).astype(np.float32))
        losses.append(step(model, optimizer, x, y))
    return {"losses": losses}
