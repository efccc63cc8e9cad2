# A mask chooses what is set: Graph mode refuses, or takes rows for places.
#: model Same() <- N([[1.,-1,-1,-1],[-1,-1,2.,3.],[-1,-1,-1,-1]])
#: model Rows() <- A(4,3), B(4)
#: model Scaled() <- A(4,3)
#: model None_() <- A(4,3)
#: model Named() <- A(4,3)
#: model Broadcast() <- A(4,3), B(4)
#: model Masked() <- A(4,3)
#: model Logical() <- A(4,3)
#: model Number() <- A(4,3)
#: model Columns() <- A(3,4), B(4)
#: model Helper() <- A(4,3)
#: model Buffer() <- A(4,3)
#: model[nograd] Whole() <- I(9,4,3)
#: model Ints() <- A(4,3)
#: model NotMask() <- A(4,3), B(4)
import torch
import torch.nn as nn


class Same(nn.Module):
    def forward(self, x):
        y = x * 1
        chosen = y > 0
        y[chosen] = y[chosen] * 10
        return y


class Rows(nn.Module):
    def forward(self, x, keep):
        out = torch.zeros_like(x)
        out[keep] = torch.tanh(x[keep])
        return out


class Scaled(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[y < 0] *= 0.1
        return y


class None_(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[y > 100] = y[y > 100] * 2
        return y


class Named(nn.Module):
    def forward(self, x):
        y = x.clone()
        places = torch.isfinite(y) & (y > 0)
        values = y[places].sqrt()
        y[places] = values
        return y


class Broadcast(nn.Module):
    def forward(self, x, keep):
        y = x.clone()
        y[keep] = x.mean(0)
        y[~keep] = x[:1]
        return y


class Masked(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[y.gt(0)] = x.masked_select(x > 0) + 1
        return y


class Logical(nn.Module):
    def forward(self, x):
        y = x.clone()
        m = torch.logical_or(x > 1, x < -1)
        y[m] = -y[m]
        y[torch.logical_not(m)] = 0
        return y


class Number(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[y > 0] = 0.0
        y[y < -1] = x.mean()
        return y


class Columns(nn.Module):
    def forward(self, x, keep):
        y = x.clone()
        y[:, keep] = 0.0
        return y


def clip(t):
    t[t > 1] = t[t > 1] * 0.5
    return t


class Helper(nn.Module):
    def forward(self, x):
        return clip(x * 2) * x


class Buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4, 3))

    def forward(self, x):
        with torch.no_grad():
            self.seen[x > 0] = x[x > 0]
        return x * self.seen


class Whole(nn.Module):
    def forward(self, i):
        j = i.clone()
        j[j > 4] = j[j > 4] - 4
        return j


class Ints(nn.Module):
    def forward(self, x):
        y = x.clone()
        best = x.argmax(1)
        y[best] = y[best] * 2
        y[torch.arange(4), best] = 0.0
        return y


class NotMask(nn.Module):
    def forward(self, x, keep):
        y = x.clone()
        where = keep.nonzero().squeeze(1)
        y[where] = x[where] * 3
        return y
