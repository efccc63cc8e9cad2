"""In: a model. Out: losses of a method that runs a batch and, if it trains, updates at times."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Runner:
    def __init__(self, model, use_amp=False, accum=2):
        self.model, self.accum, self.use_amp = model, accum, use_amp
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.scaler = torch.cuda.amp.GradScaler(enabled=use_amp)

    def run_batch(self, x, y, train=True, step=0):
        with torch.autocast("cpu", enabled=self.use_amp):
            loss = F.mse_loss(self.model(x), y)
        if train:
            self.scaler.scale(loss / self.accum).backward()
            if (step + 1) % self.accum == 0:
                self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


def build():
    return nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1))


def run(model):
    runner, rng = Runner(model), np.random.RandomState(0)
    x, y = (torch.from_numpy(rng.randn(6, n).astype(np.float32)) for n in (3, 1))
    losses = []
    for _ in range(3):
        losses += [runner.run_batch(x * (step + 1), y, True, step) for step in range(4)]
        losses.append(runner.run_batch(x, y, False))
    return losses
