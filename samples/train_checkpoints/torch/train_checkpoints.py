"""Training that is interrupted and resumed: model, optimizer, schedule and epoch in one file."""

import os
import tempfile

import numpy as np
import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.hidden = nn.Linear(5, 12)
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(self.norm(x)))).squeeze(-1)


def batches(epoch, count=8):
    rng = np.random.RandomState(100 + epoch)
    for _ in range(count):
        x = rng.randn(12, 5).astype(np.float32)
        yield torch.from_numpy(x), torch.from_numpy(x[:, 0] * x[:, 1])


def save_checkpoint(path, model, optimizer, scheduler, epoch, best):
    torch.save(
        {
            "epoch": epoch,
            "best": best,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        },
        path,
    )


def load_checkpoint(path, model, optimizer, scheduler):
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    return checkpoint["epoch"] + 1, checkpoint["best"]


def fit(model, path, epochs):
    """Trains up to ``epochs``, from the checkpoint where there is one."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    criterion = nn.MSELoss()
    start, best = 0, float("inf")
    if os.path.isfile(path):
        start, best = load_checkpoint(path, model, optimizer, scheduler)
    losses = []
    for epoch in range(start, epochs):
        model.train()
        for x, y in batches(epoch):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        best = min(best, losses[-1])
        save_checkpoint(path, model, optimizer, scheduler, epoch, best)
    return losses + [best]


def build():
    return Regressor()


def run(model):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pt")
        losses = fit(model, path, epochs=2)
        # a new process would start here, with nothing but the file
        losses += fit(model, path, epochs=4)
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    print(run(build())[-1])
