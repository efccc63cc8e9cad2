"""A classifier written the way Python invites to, and graph mode does not compile."""

import contextlib
import itertools

import torch
from torch import nn


class GatedBlock(nn.Module):
    """A residual block; ``mode`` says how its two halves are joined."""

    def __init__(self, width, mode="gate_sigmoid"):
        super().__init__()
        self.mode = mode
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.joined = None

    def forward(self, x):
        import math

        # kept for the next line only
        self.joined = self.value(x) / math.sqrt(2.0)
        match self.mode:
            case "plain":
                out = self.joined
            case "gate_sigmoid" | "gate":
                out = self.joined * torch.sigmoid(self.gate(x))
            case _:
                out = self.joined * torch.tanh(self.gate(x))
        if self.mode.startswith("gate"):
            out = out + x
        return out + 0.1 * self.joined


class GatedNet(nn.Module):
    """Blocks down, blocks up with skips, and two heads."""

    def __init__(self, width=8, depth=3, num_classes=4):
        super().__init__()
        self.down = nn.ModuleList(GatedBlock(width) for _ in range(depth))
        self.up = nn.ModuleList(GatedBlock(width, "tanh") for _ in range(depth))
        self.norm_00 = nn.LayerNorm(width)
        self.norm_01 = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)
        self.side = nn.Linear(width, num_classes)

    def encode(self, x, **options):
        scale = options.pop("scale", 1.0)
        skips = []
        for block in self.down:
            skips.append(x)
            x = block(x) * scale
        else:
            x = torch.relu(x)
        return x, skips

    def forward(self, x):
        if (width := x.shape[-1]) in {4, 8}:
            x = x * (1.0 / width)
        x, skips = self.encode(x, scale=0.5)
        hidden = x
        for block in reversed(self.up):
            with contextlib.nullcontext():
                x = block(x) + skips.pop()
        del skips
        for i in range(2):
            x = getattr(self, f"norm_{i:02d}")(x)
        for layer in itertools.chain(self.down, self.up):
            x = x + 0.01 * layer(x)
        outs = dict(logits=self.head(x), side=self.side(hidden))
        outs.update(total=torch.relu(total := outs["logits"] + outs["side"]) + total)
        return outs
