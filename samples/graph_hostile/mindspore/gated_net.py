"""A classifier written the way Python invites to, and graph mode does not compile."""

import math
import contextlib
import itertools

from mindspore import nn, ops
from torch_helpers import ModuleList


class GatedBlock(nn.Cell):
    """A residual block; ``mode`` says how its two halves are joined."""

    def __init__(self, width, mode="gate_sigmoid"):
        super().__init__()
        self.mode = mode
        self.value = nn.Dense(width, width)
        self.gate = nn.Dense(width, width)
        self.joined = None

    def construct(self, x):

        # kept for the next line only
        joined = self.value(x) / math.sqrt(2.0)
        if self.mode == "plain":
            out = joined
        elif self.mode in ("gate_sigmoid", "gate"):
            out = joined * ops.sigmoid(self.gate(x))
        else:
            out = joined * ops.tanh(self.gate(x))
        if self.mode[:4] == "gate":
            out = out + x
        return out + 0.1 * joined


class GatedNet(nn.Cell):
    """Blocks down, blocks up with skips, and two heads."""

    def __init__(self, width=8, depth=3, num_classes=4):
        super().__init__()
        self.down = ModuleList((GatedBlock(width) for _ in range(depth)))
        self.up = ModuleList((GatedBlock(width, "tanh") for _ in range(depth)))
        self.norm_00 = nn.LayerNorm((width,), epsilon=1e-05)
        self.norm_01 = nn.LayerNorm((width,), epsilon=1e-05)
        self.head = nn.Dense(width, num_classes)
        self.side = nn.Dense(width, num_classes)

    def encode(self, x, **options):
        scale = options.get("scale", 1.0)
        skips = []
        for block in self.down:
            skips.append(x)
            x = block(x) * scale
        x = ops.relu(x)
        return x, skips

    def construct(self, x):
        width = x.shape[-1]
        if width in (4, 8):
            x = x * (1.0 / width)
        x, skips = self.encode(x, scale=0.5)
        hidden = x
        for block in self.up[::-1]:
            skips_last = skips.pop()
            x = block(x) + skips_last
        for i in range(2):
            x = getattr(self, "norm_{:02d}".format(i))(x)
        for layer in [*self.down, *self.up]:
            x = x + 0.01 * layer(x)
        outs = {"logits": self.head(x), "side": self.side(hidden)}
        total = outs["logits"] + outs["side"]
        outs.update({"total": ops.relu(total) + total})
        return outs
