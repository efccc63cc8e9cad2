"""In: a model. Out: its losses: a step that is written twice, with a scaler and without."""

from types import SimpleNamespace

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def batches(k=6, seed=0):
    rng = np.random.RandomState(seed)
    found = []
    for _ in range(k):
        x = rng.randn(8, 6).astype(np.float32)
        found.append((torch.from_numpy(x), torch.from_numpy(np.tanh(x[:, 0]))))
    return found


class Exp:
    def __init__(self, args, model):
        self.args, self.model = args, model

    def train(self):
        optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        criterion = nn.MSELoss()
        if self.args.use_amp:
            scaler = torch.cuda.amp.GradScaler()
        losses = []
        for _ in range(2):
            self.model.train()
            for x, y in batches():
                optimizer.zero_grad()
                if self.args.use_amp:
                    with torch.cuda.amp.autocast():
                        loss = criterion(self.model(x), y)
                        losses.append(loss.item())
                else:
                    loss = criterion(self.model(x), y)  # in full precision
                    losses.append(loss.item())
                if self.args.use_amp:
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    loss.backward()
                    optimizer.step()
        return losses


class Trainer:
    def __init__(self, model, use_amp):
        self.model, self.use_amp = model, use_amp
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if self.use_amp:
            self.scaler = torch.amp.GradScaler("cpu")

    def batch(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        if self.use_amp:
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.optimizer.step()
        return loss.item()


def build():
    return Net()


def run(model, use_amp=False):
    losses = Exp(SimpleNamespace(use_amp=use_amp), model).train()
    trainer = Trainer(model, use_amp)
    losses += [trainer.batch(x, y) for x, y in batches(4, 1)]
    return {"losses": losses}
