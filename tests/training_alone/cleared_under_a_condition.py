"""In: a model. Out: losses; parts are frozen on the way, so gradients stay with the weights.

A function trains and evaluates: what clears gradients stands under the condition of the update.
"""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def build():
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))


def epoch(model, batches, optimizer=None):
    training = optimizer is not None
    total = 0.0
    with torch.set_grad_enabled(training):
        for x, y in batches:
            loss = F.mse_loss(model(x), y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total


def run(model):
    rng = np.random.RandomState(0)
    batches = [
        tuple(torch.from_numpy(rng.randn(4, n).astype(np.float32)) for n in (3, 1))
        for _ in range(3)
    ]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    found = []
    for number in range(4):
        for weight in model[0].parameters():
            weight.requires_grad = number % 2 == 1
        found.append(epoch(model, batches, optimizer))
        found.append(epoch(model, batches))
    return found
