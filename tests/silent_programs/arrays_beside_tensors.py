# Numbers and arrays of numpy's beside Tensors: on the left, and as an index.
import numpy as np
import torch
from torch import nn


#: model Arrays() <- P(3)
class Arrays(nn.Module):
    def __init__(self, cut=1, n=3):
        super().__init__()
        self.alpha = (1 - np.tanh(np.tanh(cut))) / cut
        self.idx = np.triu_indices(n, k=1)
        self.diag = np.diag_indices(n)
        self.w = nn.Parameter(torch.ones(3))
        self.scale = np.array([1.0, 2.0, 3.0])

    def forward(self, x):
        u = x.new_zeros(3, 3)
        u[self.idx[0], self.idx[1]] = self.w
        u[self.diag] = self.w.exp()
        y = self.alpha * torch.log(x) + np.log(2 * np.pi) * x - np.sqrt(x.shape[0]) * x
        k = np.float32(0.5) * x
        z = x[self.idx[0]] + x[np.array([0, 1, 2])] + u[self.idx].sum()
        return y @ u, k, z, -0.5 * np.log(2 * np.pi) - x, self.scale[1] * x
