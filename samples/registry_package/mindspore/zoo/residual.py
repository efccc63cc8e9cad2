from mindspore import nn
from .torch_helpers import kaiming_normal_

from .registry import ACTIVATIONS, MODELS, NORMS


class Block(nn.Cell):
    """Two convolutions and a shortcut; what is between them comes from the registries."""

    def __init__(self, inside, outside, stride, norm, act):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, pad_mode='pad', padding=1, has_bias=False)
        self.norm1 = NORMS.build(norm, outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, pad_mode='pad', padding=1, has_bias=False)
        self.norm2 = NORMS.build(norm, outside)
        self.act = ACTIVATIONS.build(act)
        self.shortcut = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Conv2d(inside, outside, 1, stride, pad_mode='valid', has_bias=True)

    def construct(self, x):
        out = self.act(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return self.act(out + self.shortcut(x))


@MODELS.register("residual_net")
class ResidualNet(nn.Cell):
    def __init__(self, widths, norm="batch", act="relu", classes=10):
        super().__init__()
        blocks = []
        inside = 3
        for number, width in enumerate(widths):
            blocks.append(Block(inside, width, 2 if number else 1, norm, act))
            inside = width
        self.blocks = nn.SequentialCell(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Dense(inside, classes)
        self._initialize()

    def _initialize(self):
        for _, m in self.cells_and_names():
            if isinstance(m, nn.Conv2d):
                kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def construct(self, x):
        x = self.pool(self.blocks(x)).flatten(start_dim=1)
        return self.head(x)
