# Functions of integer and bool Tensors, which torch computes as floats.
#: model[nograd] Net() <- I(5, 3), A(3)
import math
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.dim = dim
        pos = torch.arange(6).unsqueeze(1)
        div = torch.exp(torch.arange(0, dim, 2) * (-math.log(100.0) / dim))
        pe = torch.zeros(6, dim)
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe)

    def forward(self, ids, x):
        n = ids.long()
        k = torch.arange(ids.shape[0])
        count = (x > 0).sum()
        steps = torch.tensor([1, 2, 3])
        return (torch.exp(k), k.sqrt(), torch.sigmoid(-n), n.log1p(), (k + 1).log(), torch.sqrt(count), steps.sin(),
                torch.tanh(x > 0), (x * k).exp(), x.sigmoid(), torch.log2(steps * 2), (steps / 2).exp(), self.pe.sum(0),
                torch.cos(torch.full((2,), 3)), torch.exp(torch.zeros(2, dtype=torch.int64)), x.argmax().sqrt())
