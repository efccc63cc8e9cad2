# What host code changes in place of a Tensor that a forward reads: a graph has the old numbers.
#: script
import torch
import torch.nn as nn

TEMP = torch.tensor(1.0)
SCALE = torch.ones(2)
ROWS = torch.zeros(2, 2)


class Scaled(nn.Module):
    def forward(self, x):
        return x / TEMP


class Items(nn.Module):
    def forward(self, x):
        return x * SCALE + ROWS


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = torch.zeros(2)
        self.parts = [torch.ones(2), torch.ones(2)]

    def forward(self, x):
        return x + self.shift * self.parts[0] + self.parts[1]


x = torch.arange(4.).view(2, 2)
scaled, items, held = Scaled(), Items(), Held()
print(scaled(x).tolist(), items(x).tolist(), held(x).tolist())
TEMP.fill_(4.0)
print(scaled(x).tolist())
TEMP.mul_(0.5)
print(scaled(x).tolist())
SCALE[0] = 5.
ROWS[1, :] = 2.
print(items(x).tolist())
SCALE.add_(1)
ROWS[0].fill_(3.)
print(items(x).tolist())
held.shift += 1
print(held(x).tolist())
held.shift.mul_(3)
print(held(x).tolist())
held.shift[1] = 7.
print(held(x).tolist())
held.parts[0].mul_(2)
print(held(x).tolist())
held.parts[1][0] = 9.
print(held(x).tolist())


def halve():
    SCALE.div_(2)


halve()
print(items(x).tolist())
