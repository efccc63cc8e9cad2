"""In: SAM, whose second loss has no name, with and without a closure. Out: the first losses."""

import numpy as np
import torch
from torch import nn


class Sharp(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self):
        norms = [p.grad.norm(p=2) for g in self.param_groups for p in g["params"]]
        norm = torch.norm(torch.stack(norms), p=2)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old"] = p.data.clone()
                p.add_(p.grad * (group["rho"] / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old"]
        self.base.step()
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step()
        closure()
        self.second_step()


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def run(model):
    rng = np.random.RandomState(0)
    optimizer = Sharp(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    losses, total = [], 0.0
    for i in range(6):
        x = torch.from_numpy(rng.randn(8, 4).astype(np.float32))
        y = torch.from_numpy(rng.randint(0, 3, 8))
        loss = criterion(model(x), y)
        loss.backward()
        if i % 2:
            optimizer.first_step()
            criterion(model(x), y).backward()
            optimizer.second_step()
        else:

            def closure():
                criterion(model(x), y).backward()  # noqa: B023

            optimizer.step(closure)
        losses.append(loss.item())
        total += loss.item()
    return {"losses": losses, "total": total}
