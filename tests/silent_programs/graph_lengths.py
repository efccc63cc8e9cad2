# What the data decide the length of: graph mode stops.
#: model Range() <- A(3, 4)
#: model Times() <- A(3, 4)
#: model Grown() <- A(3, 4)
#: model Broken() <- A(3, 4)
import torch
import torch.nn as nn


class Range(nn.Module):
    def forward(self, x):
        return x * range(int((x > 0).sum()))[-1]


class Times(nn.Module):
    def forward(self, x):
        return torch.stack([x] * int((x > 0).sum())).sum(0)


class Grown(nn.Module):
    def forward(self, x):
        parts = []
        for i in range(int((x > 0).sum())):
            parts.append(x * i)
        return torch.stack(parts).sum(0)


class Broken(nn.Module):
    def forward(self, x):
        parts = []
        for i in range(3):
            if x[i].sum() < 0:
                continue
            parts.append(x[i])
        return torch.stack(parts)
