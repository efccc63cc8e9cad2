"""Training that is interrupted and resumed: model, optimizer, schedule and epoch in one file."""

import os
import mindspore as ms
from mindspore import nn, ops
from mindspore.experimental import optim
from torch_helpers import Adam, load, load_optimizer_state, load_scheduler_state, load_state_dict, optimizer_state, save, scheduler_state
import tempfile

import numpy as np


class Regressor(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.hidden = nn.Dense(5, 12)
        self.out = nn.Dense(12, 1)

    def construct(self, x):
        return self.out(ops.tanh(self.hidden(self.norm(x)))).squeeze(-1)


def batches(epoch, count=8):
    rng = np.random.RandomState(100 + epoch)
    for _ in range(count):
        x = rng.randn(12, 5).astype(np.float32)
        yield ms.Tensor.from_numpy(x), ms.Tensor.from_numpy(x[:, 0] * x[:, 1])


def save_checkpoint(path, model, optimizer, scheduler, epoch, best):
    save(
        {
            "epoch": epoch,
            "best": best,
            "model": model.state_dict(),
            "optimizer": optimizer_state(optimizer),
            "scheduler": scheduler_state(scheduler),
        },
        path,
    )


def load_checkpoint(path, model, optimizer, scheduler):
    checkpoint = load(path)
    load_state_dict(model, checkpoint["model"])
    load_optimizer_state(optimizer, checkpoint["optimizer"])
    load_scheduler_state(scheduler, checkpoint["scheduler"])
    return checkpoint["epoch"] + 1, checkpoint["best"]


def fit(model, path, epochs):
    """Trains up to ``epochs``, from the checkpoint where there is one."""
    optimizer = Adam(model.trainable_params(), lr=0.02)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    criterion = nn.MSELoss()
    start, best = 0, float("inf")
    if os.path.isfile(path):
        start, best = load_checkpoint(path, model, optimizer, scheduler)
    losses = []
    train_net = nn.TrainOneStepCell(nn.WithLossCell(model, criterion), optimizer)
    for epoch in range(start, epochs):
        model.set_train(True)
        for x, y in batches(epoch):
            loss = train_net(x, y)
            losses.append(loss.item())
        scheduler.step()
        best = min(best, losses[-1])
        save_checkpoint(path, model, optimizer, scheduler, epoch, best)
    return losses + [best]


def build():
    return Regressor().set_train()


def run(model):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pt")
        losses = fit(model, path, epochs=2)
        # a new process would start here, with nothing but the file
        losses += fit(model, path, epochs=4)
    return losses


if __name__ == "__main__":
    ms.set_seed(0)
    print(run(build())[-1])
