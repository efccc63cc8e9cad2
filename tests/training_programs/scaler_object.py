"""In: a model. Out: a step that an object with a gradient scaler makes, and norms of gradients."""

import numpy as np
import torch
import torch.nn as nn


class NormedScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

    def __call__(self, loss, optimizer, limit=None, parameters=None, graph=False, update=True):
        self._scaler.scale(loss).backward(create_graph=graph)
        if update:
            self._scaler.unscale_(optimizer)
            if limit is not None:
                norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
            else:
                norm = total_norm(parameters)
            self._scaler.step(optimizer)
            self._scaler.update()
        else:
            norm = None
        return norm


def total_norm(parameters):
    kept = [p.grad.detach() for p in parameters if p.grad is not None]
    return torch.norm(torch.stack([torch.norm(g, 2.0) for g in kept]), 2.0)


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def run(model):
    rng = np.random.RandomState(5)
    data = [
        (
            torch.from_numpy(rng.randn(5, 4).astype(np.float32)),
            torch.from_numpy(rng.randint(0, 3, 5)),
        )
        for _ in range(6)
    ]
    data[3] = (data[3][0] * float("inf"), data[3][1])  # its update is left out
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler, norms, losses = NormedScaler(), [], []
    for i, (x, y) in enumerate(data):
        loss = nn.functional.cross_entropy(model(x), y)
        if i != 3:
            losses.append(loss.item())
        loss /= 2
        norm = scaler(loss, optimizer, parameters=model.parameters(), update=i % 2 == 1)
        if i % 2 == 1:
            optimizer.zero_grad()
            if i != 3:
                norms.append(norm.item())
    return {"losses": losses, "norms": norms}
