"""An encoder with two heads of one shape."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 5)
        self.mean = nn.Linear(5, 3)
        self.logvar = nn.Linear(5, 3)

    def forward(self, x):
        h = torch.relu(self.body(x))
        return self.mean(h), self.logvar(h)
