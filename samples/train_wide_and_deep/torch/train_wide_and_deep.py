"""Wide & Deep: the linear part and the network each with a loss and an optimizer of its own."""

import numpy as np
import torch
from torch import nn, optim


class WideDeep(nn.Module):
    def __init__(self, fields=4, buckets=20, dim=8):
        super().__init__()
        self.wide = nn.Embedding(fields * buckets, 1)
        self.embedding = nn.Embedding(fields * buckets, dim)
        self.deep = nn.Sequential(
            nn.Linear(fields * dim, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1)
        )
        self.register_buffer("offsets", torch.arange(fields) * buckets)

    def forward(self, ids):
        ids = ids + self.offsets
        wide = self.wide(ids).sum(dim=1)
        deep = self.deep(self.embedding(ids).flatten(1))
        return wide, deep


def clicks(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        ids = rng.randint(0, 20, (16, 4)).astype(np.int64)
        labels = ((ids[:, 0] + ids[:, 1]) % 5 < 2).astype(np.float32)[:, None]
        yield torch.from_numpy(ids), torch.from_numpy(labels)


def build():
    return WideDeep()


def run(model, steps=24):
    criterion = nn.BCEWithLogitsLoss()
    wide_optimizer = optim.SGD(model.wide.parameters(), lr=0.5)
    deep_optimizer = optim.Adam(
        list(model.embedding.parameters()) + list(model.deep.parameters()), lr=0.01
    )
    losses = []
    for ids, labels in clicks(steps, seed=3):
        wide, deep = model(ids)
        # the wide part is trained against the sum, the deep part by itself with a penalty
        wide_loss = criterion(wide + deep.detach(), labels)
        deep_loss = criterion(deep, labels) + 1e-3 * model.embedding.weight.pow(2).sum()
        wide_optimizer.zero_grad()
        deep_optimizer.zero_grad()
        wide_loss.backward()
        deep_loss.backward()
        wide_optimizer.step()
        deep_optimizer.step()
        losses += [wide_loss.item(), deep_loss.item()]
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    print(run(build())[-2:])
