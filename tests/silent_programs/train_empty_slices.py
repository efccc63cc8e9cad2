# Reductions over slices that may take nothing, and angles of complex numbers.
#: model[nograd] Rest() <- A(3,4), 4
#: model[nograd] Rest() <- A(3,4), 2
#: model Phase() <- A(2,8)
import torch
import torch.nn as nn


class Rest(nn.Module):
    def forward(self, x, n):
        head, rest = x[:, :n], x[:, n:]
        last = x[3:]
        none = torch.ones(0, 4)
        return head.mean(), rest.sum(), rest.prod(1), (rest * 2).mean(dim=0).sum(), last.prod(), none.mean(0)


class Phase(nn.Module):
    def forward(self, x):
        f = torch.fft.fft(x)
        return torch.angle(f), f.angle() + torch.angle(x)
