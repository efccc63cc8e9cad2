"""In: three models. Out: their losses: a scaler takes part when asked, in several ifs."""

import contextlib
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast


class Nets(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = made(), made(), made()


def made():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))


def build():
    return Nets()


def batches():
    rng = np.random.RandomState(4)
    arrays = [rng.randn(6, 6).astype(np.float32) for _ in range(5)]
    return [(torch.from_numpy(a[:, :5]), torch.from_numpy(a[:, 5:])) for a in arrays]


class Accumulating:
    """On self, or None; what follows `backward()` is asked again."""

    def __init__(self, model, args):
        self.model, self.args = model, args
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = GradScaler() if args.amp else None

    def epoch(self, data):
        losses = []
        self.optimizer.zero_grad()
        for i, (x, y) in enumerate(data):
            context = autocast() if self.scaler is not None else contextlib.nullcontext()
            with context:
                loss = F.mse_loss(self.model(x), y) / 2
            losses.append(loss.item())
            if self.scaler is not None:
                self.scaler.scale(loss).backward()
            else:
                loss.backward()
            if (i + 1) % 2 == 0 or i + 1 == len(data):
                if self.scaler is not None:
                    self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
                if self.scaler is None:
                    self.optimizer.step()
                else:
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                self.optimizer.zero_grad()
        return losses


class Spread:
    """Made always, used when asked; the step is spread over two methods."""

    def __init__(self, model, amp):
        self.model, self.amp = model, amp
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        self.scaler = GradScaler()

    def backward(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        if self.amp:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()
        return loss.detach()

    def epoch(self, data):
        losses = []
        for x, y in data:
            self.optimizer.zero_grad()
            loss = self.backward(x, y)
            if self.amp:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            losses.append(loss.item())
        return losses


def in_a_function(model, data, use_amp):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scaler = torch.amp.GradScaler("cuda") if use_amp else None
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        if use_amp:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.l1_loss(model(x), y)
        else:
            loss = F.l1_loss(model(x), y)
        if scaler:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if use_amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        losses.append(loss.item())
    kept = {} if scaler is None else scaler.state_dict()
    return losses, len(kept)


def run(nets):
    first, second, third = nets.first, nets.second, nets.third
    data = batches()
    trainer = Accumulating(first, SimpleNamespace(amp=False))
    found = {"accumulating": [trainer.epoch(data) for _ in range(2)]}
    found["spread"] = Spread(second, False).epoch(data)
    found["function"], found["kept"] = in_a_function(third, data, False)
    return found
