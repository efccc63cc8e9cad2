"""In: a model. Out: losses: function and step see the model at the file's top level.

Its optimizer is wrapped in a schedule of one's own, so gradients stay with the weights.
"""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Warm:
    def __init__(self, factor, optimizer):
        self.factor, self.optimizer, self.steps = factor, optimizer, 0

    def step(self):
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.factor * min(1.0, self.steps / 3)
        self.optimizer.step()

    def zero_grad(self):
        self.optimizer.zero_grad()


net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
wrapped = Warm(0.1, torch.optim.SGD(net.parameters(), lr=0))
rng = np.random.RandomState(0)
data = [torch.from_numpy(rng.randn(4, n).astype(np.float32)) for n in (3, 1)]


def build():
    return net


def epoch():
    x, y = data
    loss = F.mse_loss(net(x), y)
    wrapped.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    wrapped.step()
    return loss.item()


def run(model):
    return [epoch() for _ in range(5)]
