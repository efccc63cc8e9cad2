from mindspore import nn
from .torch_helpers import GELU, ReLU, leaky_relu

from .registry import ACTIVATIONS, NORMS

ACTIVATIONS.register("relu")(ReLU)
ACTIVATIONS.register("gelu")(GELU)


@ACTIVATIONS.register("leaky_relu")
class Leaky(nn.Cell):
    def __init__(self, slope=0.01):
        super().__init__()
        self.slope = slope

    def construct(self, x):
        return leaky_relu(x, self.slope)


@NORMS.register("batch")
def batch_norm(channels):
    return nn.BatchNorm2d(channels).set_train()


@NORMS.register("group")
def group_norm(channels, groups=4):
    # as many groups as fit
    while channels % groups:
        groups -= 1
    return nn.GroupNorm(groups, channels)


NORMS.register("none")(lambda channels: nn.Identity())
