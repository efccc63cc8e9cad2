# Random numbers of Python between 0 and 1: drawn at each call in graph mode, too.
#: model Net(1.0) <- A(4, 3)
#: model Net(0.0) <- A(4, 3)
#: script
import random

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, share):
        super().__init__()
        self.share = share
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(2):
            h = self.a(x)
            x = h if random.random() < self.share else self.b(h)
        if self.training and np.random.rand() < 0.0:
            return x * 0
        return x * random.uniform(2.0, 2.0)


class Draws(nn.Module):
    def forward(self, x):
        return x * random.random()


net, x = Draws(), torch.ones(1)
print(len({net(x).item() for _ in range(20)}))
