# Helpers and the names that they need: clashing imports, late imports, names under two ways.
#: model Net() <- A(2,4)
#: model Own() <- I(5,2,3)
import os
os.environ["SILENT_PROGRAM"] = "1"
import torch.nn as nn
import torch

try:
    from apex.normalization import FusedLayerNorm as LayerNorm
except ImportError:
    from torch.nn import LayerNorm

freeze = torch.jit.freeze
kinds = {"norm": LayerNorm, "compiled": torch.compile}


class Net(nn.Module):
    def __init__(self, norm=nn.Softmax):
        super().__init__()
        self.n = LayerNorm(4)
        self.s = norm(-1)

    def forward(self, x):
        return self.s(self.n(x))


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 3)
        for p in self.parameters():
            nn.init.normal_(p, 0.0, 0.02)

    def forward(self, i):
        return self.emb(i)
