"""In: rows of tables, graphs. Out: right models of other kinds, to be converted and spoilt."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Graph(nn.Module):
    """Two graph convolutions over a dense adjacency matrix."""

    def __init__(self):
        super().__init__()
        self.weight1 = nn.Parameter(torch.randn(6, 10) / 3)
        self.weight2 = nn.Parameter(torch.randn(10, 10) / 3)
        self.bias = nn.Parameter(torch.zeros(10))
        self.fc = nn.Linear(10, 4)

    def forward(self, x, near):
        near = near + torch.eye(near.shape[0])
        degree = near.sum(dim=1)
        near = near / degree.unsqueeze(1)
        x = F.relu(near @ x @ self.weight1 + self.bias)
        x = F.dropout(x, 0.4, training=self.training)
        x = F.elu(near @ (x @ self.weight2))
        return F.log_softmax(self.fc(x), dim=1)


class Experts(nn.Module):
    """A gated sum of experts, half of which is not told how the gate liked it."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.norm = nn.BatchNorm1d(8, affine=False)
        self.out = nn.Bilinear(8, 8, 2)

    def forward(self, x):
        x = self.norm(x)
        gate = F.softmax(self.gate(x), dim=1)
        parts = torch.stack([expert(x) for expert in self.experts], dim=1)
        mixed = (gate.unsqueeze(-1) * parts).sum(dim=1)
        mixed.mul_(0.5)
        mixed.add_(x.detach())
        return self.out(mixed, torch.clamp(x, min=-1.0, max=1.0))


class Ranker(nn.Module):
    """Factorised interactions of categories; the frozen table is not trained."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 8)
        self.fixed = nn.Embedding(40, 8)
        self.fixed.weight.requires_grad = False
        self.register_buffer("mean", torch.linspace(-1, 1, 8))
        self.deep = nn.Sequential(
            nn.Linear(32, 16), nn.BatchNorm1d(16), nn.GELU(approximate="tanh"), nn.Dropout(0.2),
            nn.Linear(16, 1),
        )  # fmt: skip

    def forward(self, items):
        e = self.embed(items) + self.fixed(items) - self.mean
        cross = 0.5 * (e.sum(dim=1).pow(2) - e.pow(2).sum(dim=1)).sum(dim=1, keepdim=True)
        return torch.sigmoid(cross + self.deep(e.flatten(1)))


class Flow(nn.Module):
    """A coupling layer: values and the logarithm of the volume."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        left, right = torch.split(x, 4, dim=1)
        shift, scale = self.net(left).chunk(2, dim=1)
        scale = 2 * torch.sigmoid(scale + 2)
        right = (right + shift) * scale
        volume = torch.log(scale).sum(dim=1)
        order = torch.argsort(x, dim=1, descending=True)
        prior = -0.5 * (left.square() + right.square()).sum(1)
        return torch.cat([left, right.flip(1)], dim=1), volume + prior, order


class Standard(nn.Module):
    """Standardises by running statistics of its own, then classifies."""

    def __init__(self):
        super().__init__()
        self.register_buffer("running", torch.zeros(5))
        self.fc1 = nn.Linear(5, 12)
        self.fc2 = nn.Linear(12, 3)
        self.drop = nn.Dropout(0.25)

    def forward(self, x):
        if self.training:
            self.running = 0.9 * self.running + 0.1 * x.detach().mean(0)
        x = (x - self.running) / (x.var(0) + 1e-3).sqrt()
        return self.fc2(self.drop(torch.relu(self.fc1(x))))
