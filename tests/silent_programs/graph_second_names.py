# In Graph mode a list or dict that has a second name, or that something goes over later, is a copy.
import torch
import torch.nn as nn


#: model OfALoop() <- A(3)
class OfALoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        d = {"a": x}
        for e in (d,):
            e["a"] = x * 2 * self.w
        return d["a"]


#: model Chosen() <- A(3)
class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        d = {"a": x}
        e = d if len(x) > 2 else {}
        e["a"] = x * self.w
        return d["a"]


#: model Either() <- A(3)
class Either(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        d = {"a": x}
        e = d or {}
        e["a"] = x * self.w
        return d["a"]


#: model BoundTogether() <- A(3)
class BoundTogether(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        a = b = [x]
        a += [x * self.w]
        return sum(b)


#: model Generated() <- A(3)
class Generated(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        parts = [x, x * 2]
        g = (p * self.w for p in parts)
        parts.append(x * 3)
        return sum(g)


#: model Zipped() <- A(3)
class Zipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        parts = [x, x * 2]
        z = zip(parts, [1, 2, 3])
        parts.append(x * 3)
        return sum(a * b for a, b in z) * self.w


#: model Listed() <- A(3)
class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        parts = [x, x * 2]
        z = list(zip(parts, [1, 2, 3]))
        parts.append(x * 3)
        return sum(a * b for a, b in z) * self.w


#: model Grown() <- A(3)
class Grown(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        ks = []
        for i in range(3):
            ks += [x * i]
            if i == 1:
                ks[0] = x * 9 * self.w
        return sum(ks)
