"""Data, splits, orders and noise of generators: the same numbers as torch's, in the same order."""

import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)


def build():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))


def noisy(x, scale, generator=None):
    return x + scale * torch.randn(x.shape, generator=generator)


def run(model):
    g = torch.Generator()
    g.manual_seed(2147483647)
    x = torch.randn(60, 6, generator=g)
    y = torch.randint(0, 3, (60, 1), generator=g).float() + torch.rand(60, 1, generator=g)
    split = torch.Generator().manual_seed(42)
    train, rest = random_split(TensorDataset(x, y), [50, 10], generator=split)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    noise = torch.Generator().manual_seed(3)
    losses = []
    for _epoch in range(2):
        for inputs, targets in DataLoader(train, batch_size=8, shuffle=True, generator=g):
            latent = torch.randn(inputs.size(0), 6, generator=noise)
            moved = noisy(inputs, 0.1, g) + 0.1 * latent
            loss = nn.functional.mse_loss(model(moved), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    seen = list(WeightedRandomSampler([0.1, 0.5, 2.0], 5, generator=g))
    seen += list(SubsetRandomSampler([3, 5, 8], generator=g))
    seen += list(RandomSampler(rest, generator=g))
    seen += list(RandomSampler(range(5), True, 40, g)) + torch.randperm(7, generator=g).tolist()
    seen += torch.empty(4).random_(2, 9, generator=g).tolist()
    drawn = torch.cat(
        (
            torch.empty(5).uniform_(-1, 1, generator=g),
            torch.empty(40).normal_(1.0, 2.0, generator=g),
            torch.normal(0.0, 1.0, (3,), generator=g),
            torch.bernoulli(torch.full((6,), 0.3), generator=g),
        )
    )
    return {
        "losses": losses,
        "seen": [float(n) for n in seen],
        "drawn": drawn.tolist(),
        "seed": [g.initial_seed()],
    }
