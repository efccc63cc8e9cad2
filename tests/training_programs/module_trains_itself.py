"""In: a Module that holds its optimizer and its loop. Out: its losses: it is the network."""

import numpy as np
import torch
from torch import nn, optim
from torch.nn.functional import l1_loss, mse_loss


class Forecaster(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.device = device
        self.first = nn.Linear(4, width)
        self.last = nn.Linear(width, 2)
        self._loss = None
        self._opt = None

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        return hidden, self.last(hidden)

    def prepare(self, loss):
        self._loss = mse_loss if loss == "mse" else l1_loss
        self._opt = optim.Adam(self.parameters(), lr=0.05)

    def fit(self, xs, ys, epochs):
        losses = []
        for _ in range(epochs):
            self.train()
            for x, y in zip(xs, ys, strict=True):
                self._opt.zero_grad()
                _, forecast = self(x.to(self.device))
                loss = self._loss(forecast, y.to(self.device))
                losses.append(loss.item())
                loss.backward()
                self._opt.step()
        return losses


def build():
    return Forecaster(6, "cpu")


def run(model):
    rng = np.random.RandomState(3)
    xs = torch.from_numpy(rng.randn(6, 5, 4).astype(np.float32))
    model.prepare("mse")
    return {"losses": model.fit(xs, torch.stack([xs.sum(-1), xs.amax(-1)], -1), 2)}
