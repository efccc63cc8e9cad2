"""In: a model. Out: its losses: an optimizer class that wraps another calls no constructor."""

from collections import defaultdict

import numpy as np
import torch
import torch.nn as nn
from torch.optim import Optimizer


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


class Signed(Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.5):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["mean"] = torch.zeros_like(p)
                state["mean"].mul_(group["momentum"]).add_(p.grad, alpha=1 - group["momentum"])
                p.add_(state["mean"].sign(), alpha=-group["lr"])


class Lookahead(Optimizer):
    def __init__(self, optimizer, k=3, alpha=0.5):
        self.optimizer, self.k, self.alpha = optimizer, k, alpha
        self.param_groups = self.optimizer.param_groups
        self.state = defaultdict(dict)
        for group in self.param_groups:
            group["counter"] = 0

    def update(self, group):
        for fast in group["params"]:
            kept = self.state[fast]
            if "slow" not in kept:
                kept["slow"] = fast.data.clone()
            kept["slow"] += (fast.data - kept["slow"]) * self.alpha
            fast.data.copy_(kept["slow"])

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self, closure=None):
        self.optimizer.step(closure)
        for group in self.param_groups:
            if group["counter"] == 0:
                self.update(group)
            group["counter"] = (group["counter"] + 1) % self.k


def run(model):
    rng = np.random.RandomState(1)
    x = torch.from_numpy(rng.randn(24, 4).astype(np.float32))
    y = x.pow(2).sum(1, keepdim=True)
    optimizer = Lookahead(Signed(model.parameters(), lr=0.02))
    losses = []
    for _ in range(9):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}
