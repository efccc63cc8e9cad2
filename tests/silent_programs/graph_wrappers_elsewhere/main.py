# The names of a wrapper are those of the file it is written in.
import torch
from torch import nn
from deco import keep

SCALE = 100.0

@keep
def twice(x, by=2.0):
    return x * by + SCALE

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        return twice(self.lin(x), by=1.5)

#: model Net() <- A(3, 4)
