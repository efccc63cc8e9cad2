# Gradients where a function bends: zeros, ties, and probabilities that are 0 or 1.
#: model Slopes() <- N([[0.0, -1.0, 2.0], [0.0, 0.0, -0.5]])
#: model Layers() <- N([[0.0, -1.0, 2.0], [0.0, 0.0, -0.5]])
#: model Saturated() <- N([0.0, 1.0, 0.25, 1.0, 0.0]), N([0.0, 1.0, 1.0, 0.0, 1.0])
#: model Ranked() <- N([0.5, 1.0, -1.0]), N([0.5, 0.0, -1.0])
#: model Bounds() <- N([-2.0, -0.5, 0.0, 0.5, 1.0, 2.0])
#: model Alike() <- N([[0.0, 1.0], [0.0, 2.0]]), N([[1.0, 1.0], [2.0, 2.0]])
#: model Powers() <- N([0.0, 2.0, 3.0]), N([0.0, 0.0, 2.0])
import torch
import torch.nn.functional as F
from torch import nn


class Slopes(nn.Module):
    def forward(self, x):
        return F.leaky_relu(x, 0.2), F.elu(x, 0.5), F.celu(x, 0.5), F.selu(x), F.rrelu(x)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.acts = nn.ModuleList([nn.LeakyReLU(0.2), nn.ELU(2.0), nn.CELU(2.0), nn.SELU(), nn.ReLU6()])

    def forward(self, x):
        return [act(x) for act in self.acts]


class Saturated(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.BCELoss(reduction="none")

    def forward(self, p, t):
        return F.binary_cross_entropy(p, t, reduction="none"), self.loss(p, t)


class Ranked(nn.Module):
    def forward(self, a, b):
        turn = torch.ones_like(a)
        ranked = F.margin_ranking_loss(a, b, turn, reduction="none")
        return ranked, F.hinge_embedding_loss(a, -turn, margin=0.5, reduction="none")


class Bounds(nn.Module):
    def __init__(self):
        super().__init__()
        self.acts = nn.ModuleList([nn.Hardtanh(-0.5, 0.5), nn.ReLU6(), nn.Hardsigmoid(), nn.Hardswish()])

    def forward(self, x):
        return [act(x) for act in self.acts], F.hardtanh(x, -0.5, 0.5), x.clamp(-0.5, 0.5)


class Alike(nn.Module):
    def __init__(self):
        super().__init__()
        self.cosine = nn.CosineSimilarity(0, 1e-6)

    def forward(self, a, b):
        return self.cosine(a, b), F.cosine_similarity(a, b, 0), F.pairwise_distance(a, b)


class Powers(nn.Module):
    def forward(self, base, power):
        return torch.pow(base, power)
