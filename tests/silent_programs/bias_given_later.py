# A layer that is built without a bias, and gets one later, adds it from then on.
#: model[nograd] Given() <- A(3,4)
import torch
import torch.nn as nn


def give(layer, value):
    layer.bias = nn.Parameter(value)
    return layer


class Given(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 3, bias=False)
        self.qkv.bias = nn.Parameter(torch.arange(3) + 1.0)
        self.last = give(nn.Linear(3, 2, bias=False), torch.ones(2) * 3)

    def forward(self, x):
        return self.last(self.qkv(x))
