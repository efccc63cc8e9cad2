import torch.nn as nn

from .registry import ACTIVATIONS, MODELS, NORMS


class Block(nn.Module):
    """Two convolutions and a shortcut; what is between them comes from the registries."""

    def __init__(self, inside, outside, stride, norm, act):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.norm1 = NORMS.build(norm, outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.norm2 = NORMS.build(norm, outside)
        self.act = ACTIVATIONS.build(act)
        self.shortcut = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Conv2d(inside, outside, 1, stride)

    def forward(self, x):
        out = self.act(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return self.act(out + self.shortcut(x))


@MODELS.register("residual_net")
class ResidualNet(nn.Module):
    def __init__(self, widths, norm="batch", act="relu", classes=10):
        super().__init__()
        blocks = []
        inside = 3
        for number, width in enumerate(widths):
            blocks.append(Block(inside, width, 2 if number else 1, norm, act))
            inside = width
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(inside, classes)
        self._initialize()

    def _initialize(self):
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.pool(self.blocks(x)).flatten(1)
        return self.head(x)
