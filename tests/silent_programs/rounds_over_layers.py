# Sums of what lists of layers make of one input: with layers, a new tensor; without, the input.
#: model Sum() <- A(2,3,5)
#: model Clipped() <- A(2,3,5)
#: model Divided() <- A(2,3,6)
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(c, c, 3, padding=1), nn.Conv1d(c, c, 1)])

    def forward(self, x):
        for conv in self.convs:
            x = conv(torch.tanh(x)) + x
        return x


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(3) for _ in range(3)])

    def forward(self, x):
        x = x * 2
        total = None
        for block in self.blocks:
            if total is None:
                total = block(x)
            else:
                total += block(x)
        return total / 3 + x


class Clipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(), nn.Conv1d(3, 3, 1), nn.Sequential()])
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = x * 2
        made = []
        for i in range(len(self.layers)):
            made.append(self.layers[i](x))
        for i in range(len(made)):
            made[i] = self.relu(made[i])
        return made[0] + 2 * made[1] + 3 * made[2]


class Divided(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(6, 9)

    def parts(self, x):
        return self.qkv(x).chunk(3, dim=-1)

    def forward(self, x):
        with torch.no_grad():
            q, k, v = self.parts(x)
            q *= 0.5
            k.add_(1)
        a, b, c = self.parts(x)
        return (q + k + v) * a + b * c
