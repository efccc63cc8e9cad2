# What a comprehension or map makes of tensors that are written out, or of parts, is apart by item.
import torch
import torch.nn as nn


def rearr(t, h):
    return t.reshape(2, h, -1, 3)


#: model Qd() <- A(2, 4, 3)
class Qd(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        q, k, v = self.fc(x), self.fc(x) * 2, self.fc(x) * 3
        q, k, v = map(lambda t: t.view(2, 2, 2, 3), (q, k, v))
        q *= 0.5
        return q * k * v * self.w.sum()


#: model Qe() <- A(2, 4, 3)
class Qe(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        q, k, v = self.fc(x), self.fc(x) * 2, self.fc(x) * 3
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
        q *= 0.5
        return q * k * v * self.w.sum()


#: model Qm() <- A(2, 4, 3)
class Qm(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        h = 2
        q, k = [rearr(t, h) for t in (self.fc(x), x * self.w)]
        q *= 0.5
        return q * k


#: model Ra() <- A(2, 4, 3)
class Ra(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        q, k, v = map(lambda t: t.reshape(2, 4, 1, 1), self.fc(x).chunk(3, dim=-1))
        q *= 0.5
        return q * k * v * self.w.sum()


#: model Rb() <- A(2, 4, 3)
class Rb(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        qkv = self.fc(x).chunk(3, dim=-1)
        q, k, v = map(lambda t: t.reshape(2, 2, 2, 1).transpose(1, 2), qkv)
        q *= 0.5
        return q * k * v * self.w.sum()


#: model Rc() <- A(2, 4, 3)
class Rc(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y = self.fc(x)
        q, k, v = [t.transpose(0, 1) for t in y.chunk(3, dim=-1)]
        q *= 0.5
        return q * k * v + y.sum()


#: model Rd() <- A(2, 4, 3)
class Rd(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        q, k, v = (t.transpose(0, 1) for t in self.fc(x).split(1, dim=-1))
        q *= 0.5
        k += q
        return q * k * v


#: model Re() <- A(2, 4, 3)
class Re(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        qkv = self.fc(x).chunk(3, dim=-1)
        q, k, v = map(lambda t: t.reshape(2, 2, 2, 1), qkv)
        q *= 0.5
        return q * k * v * qkv[0].sum()


#: model Rf() <- A(2, 4, 3)
class Rf(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        a, b = map(lambda t: t[0], (self.fc(x), self.fc(x) * 2))
        a += 1
        b *= a
        return a * b


#: model Rg() <- A(2, 4, 3)
class Rg(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y = self.fc(x)
        a, b = map(lambda t: t, (y, y))
        a += 1
        return a * b


#: model Rh() <- A(2, 4, 3)
class Rh(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y = self.fc(x)
        a, b = map(lambda t: t[0], (y, x * 2))
        a += 1
        return y * b


#: model Ri() <- A(2, 4, 3)
class Ri(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        ys = []
        for i in range(2):
            a, b = map(lambda t: t * i, (self.fc(x), x))
            a += 1
            ys.append(a)
            ys.append(b)
        return torch.stack(ys)


#: model Rj() <- A(2, 4, 3)
class Rj(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        ys = []
        for i in range(2):
            a, b = [t.transpose(0, 1) for t in (self.fc(x), x * 2)]
            a += 1
            if ys:
                ys[0] += 1
            ys.append(a)
        return torch.stack(ys) + b
