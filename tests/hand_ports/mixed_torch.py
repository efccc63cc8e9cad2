"""In: nothing. Out: models of several fields in torch, ported by hand in mixed_ms.py."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(0.1 * torch.ones(dim))

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 4, stride=4)
        self.blocks = nn.Sequential(ConvNeXtBlock(12), ConvNeXtBlock(12))
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean([-2, -1]))


class Tcn(nn.Module):
    """Causal convolutions over time."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(4, 8, 3, dilation=1)
        self.conv2 = nn.Conv1d(8, 8, 3, dilation=2)
        self.norm = nn.BatchNorm1d(8)
        self.act = nn.LeakyReLU()
        self.pool = nn.AvgPool1d(3, stride=2, padding=1)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        x = self.act(self.conv1(F.pad(x, (2, 0))))
        x = self.act(self.norm(self.conv2(F.pad(x, (4, 0)))))
        return self.fc(self.pool(x)[:, :, -1])


class Squeeze(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.act = nn.Hardswish()
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 8, 1),
            nn.Hardsigmoid(),
        )  # fmt: skip
        self.pool = nn.AvgPool2d(2, ceil_mode=True)
        self.fc = nn.Linear(8 * 16, 4)

    def forward(self, x):
        x = self.act(self.bn(self.conv(x)))
        x = self.pool(x * self.squeeze(x))
        return self.fc(torch.flatten(x, 1))


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv3d(1, 4, 3, padding=1)
        self.norm1 = nn.BatchNorm3d(4)
        self.pool = nn.MaxPool3d(2)
        self.conv2 = nn.Conv3d(4, 8, 3)
        self.drop = nn.Dropout3d(0.25)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = self.pool(F.relu(self.norm1(self.conv1(x))))
        x = self.drop(F.relu(self.conv2(x)))
        return self.fc(x.mean(dim=(2, 3, 4)))


class Style(nn.Module):
    """Adaptive instance norm between an encoder and a decoder."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Conv2d(3, 8, 3, padding=1)
        self.prelu = nn.PReLU()
        self.style = nn.Linear(6, 16)
        self.up = nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.out = nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, x, style):
        x = self.prelu(self.encode(x))
        mean = x.mean(dim=(2, 3), keepdim=True)
        std = x.std(dim=(2, 3), keepdim=True) + 1e-5
        scale, shift = self.style(style)[:, :, None, None].chunk(2, dim=1)
        x = (x - mean) / std * scale + shift
        return torch.tanh(self.out(F.elu(self.norm(self.up(x)))))


class Momentum(nn.Module):
    """A student beside a teacher that gets no gradient (as in BYOL)."""

    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(),
                                     nn.Linear(16, 8))  # fmt: skip
        self.teacher = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(),
                                     nn.Linear(16, 8))  # fmt: skip
        for p in self.teacher.parameters():
            p.requires_grad = False
        self.predictor = nn.Linear(8, 8)

    def forward(self, one, two):
        p = F.normalize(self.predictor(self.student(one)), dim=1)
        with torch.no_grad():
            z = F.normalize(self.teacher(two), dim=1)
        return 2 - 2 * (p * z).sum(dim=1)


class CellRnn(nn.Module):
    """A recurrent cell in a loop, with attention over its states."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.cell = nn.GRUCell(8, 8)
        self.score = nn.Linear(8, 1)
        self.out = nn.Linear(8, 20)

    def forward(self, tokens):
        x = self.embed(tokens)
        h = x.new_zeros(x.shape[0], 8)
        states = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            states.append(h)
        states = torch.stack(states, dim=1)
        weight = torch.softmax(self.score(states), dim=1)
        return F.log_softmax(self.out((weight * states).sum(1)), dim=-1)
