"""In: a model. Out: its losses: gradients of an input in a function, and cleared between steps."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def build():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def attacked(image, epsilon, gradient):
    return torch.clamp(image + epsilon * gradient.sign(), -3, 3)


def adversarial(model, data, target, epsilon):
    data = data.clone().detach().requires_grad_(True)
    loss = F.cross_entropy(model(data), target)
    model.zero_grad()
    loss.backward()
    return attacked(data, epsilon, data.grad).detach()


def run(model):
    rng = np.random.RandomState(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        x = torch.from_numpy(rng.randn(8, 6).astype(np.float32))
        y = torch.from_numpy(rng.randint(0, 3, 8))
        adv = adversarial(model, x, y, 0.1)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) + F.cross_entropy(model(adv), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    for _ in range(3):
        first = model(x).abs().mean()
        optimizer.zero_grad()
        first.backward()
        optimizer.zero_grad()
        second = F.cross_entropy(model(x), y)
        second.backward()
        optimizer.step()
        losses.append(second.item())
    return {"losses": losses}
