"""In: a model. Out: its losses: scaled losses added up, clipped, some of them not finite."""

import numpy as np
import torch
import torch.nn as nn
from torch.amp import GradScaler
from torch.cuda.amp import autocast


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def train_epoch(
    model, loader, optimizer, scheduler, scaler, accumulation_steps=3, max_norm=1.0, use_amp=False
):
    model.train()
    losses = []
    optimizer.zero_grad()
    for step, (x, y) in enumerate(loader):
        with autocast(enabled=use_amp):
            pred = model(x)
            loss = nn.functional.mse_loss(pred, y)
        losses.append(min(loss.item(), 1e6))
        loss = loss / accumulation_steps
        scaler.scale(loss).backward()
        if (step + 1) % accumulation_steps == 0 or (step + 1) == len(loader):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            scheduler.step()
    return losses


def build():
    return Net()


def run(model):
    rng = np.random.RandomState(13)
    big = [1e30 if i == 4 else 1.0 for i in range(7)]
    loader = [
        (
            torch.from_numpy(rng.randn(8, 6).astype(np.float32)),
            torch.from_numpy((rng.randn(8) * big[i]).astype(np.float32)),
        )
        for i in range(7)
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    scaler = GradScaler("cpu", init_scale=256.0, growth_interval=2)
    out = []
    for _epoch in range(2):
        out += train_epoch(model, loader, optimizer, scheduler, scaler)
        out += [scheduler.get_last_lr()[0], scaler.get_scale()]
    return {"losses": out}
