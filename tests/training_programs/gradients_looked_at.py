"""In: a model. Out: its losses and norms: gradients are read, changed and clipped."""

import numpy as np
import torch
import torch.nn as nn


def build():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))


def grad_norm(model):
    total = 0.0
    for p in model.parameters():
        if p.grad is not None:
            param_norm = p.grad.data.norm(2)
            total += param_norm.item() ** 2
    return total**0.5


def run(model):
    rng = np.random.RandomState(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
    losses, norms = [], []
    for _step in range(8):
        x = torch.from_numpy(rng.randn(5, 6).astype(np.float32))
        y = torch.from_numpy(rng.randn(5, 1).astype(np.float32))
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        norms.append(grad_norm(model))
        for name, p in model.named_parameters():
            if "bias" in name:
                p.grad.mul_(2.0)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return {"losses": losses, "norms": norms, "lr": optimizer.param_groups[0]["lr"]}
