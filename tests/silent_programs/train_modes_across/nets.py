from torch import nn


class Gate(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by if self.training else x


def _block(n):
    return nn.Sequential(nn.BatchNorm1d(n), Gate(0.25))


def make(n):
    return nn.Sequential(_block(n), _block(n))
