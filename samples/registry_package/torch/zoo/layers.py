import torch.nn as nn
import torch.nn.functional as F

from .registry import ACTIVATIONS, NORMS

ACTIVATIONS.register("relu")(nn.ReLU)
ACTIVATIONS.register("gelu")(nn.GELU)


@ACTIVATIONS.register("leaky_relu")
class Leaky(nn.Module):
    def __init__(self, slope=0.01):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return F.leaky_relu(x, self.slope)


@NORMS.register("batch")
def batch_norm(channels):
    return nn.BatchNorm2d(channels)


@NORMS.register("group")
def group_norm(channels, groups=4):
    # as many groups as fit
    while channels % groups:
        groups -= 1
    return nn.GroupNorm(groups, channels)


NORMS.register("none")(lambda channels: nn.Identity())
