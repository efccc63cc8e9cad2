# Sums in containers, closures and methods: nothing but the sum changes.
#: model Elements() <- A(3), A(3,s=2)
#: model Dicts() <- A(3), A(3,s=2)
#: model Sums() <- A(3), A(3,s=2)
#: model Consts() <- A(3)
#: model Feats() <- A(2,3)
#: model Closure() <- A(3), A(3,s=2)
#: model WithLambda() <- A(3), A(3,s=2)
#: model Cond() <- A(3), A(3,s=2)
#: model Unpack() <- A(2,3)
#: model Walrus() <- A(3)
#: model Chain() <- A(3), A(3,s=2)
#: model Kept() <- A(3), A(3,s=2)
#: model WhileSum() <- A(3)
#: model SumBuiltin() <- A(3), A(3,s=2)
#: model Opt() <- A(3), A(3,s=2)
#: model Method() <- A(3), A(3,s=2)
import torch
import torch.nn as nn


class Elements(nn.Module):
    def forward(self, x, y):
        outs = [x + 0, y + 0]
        outs[0] += y
        outs[1] += x
        return outs[0] * x + outs[1] * y


class Dicts(nn.Module):
    def forward(self, x, y):
        d = {"a": 0, "b": torch.tensor([1.0, 2.0, 3.0])}
        d["a"] += x
        d["a"] += y
        d["b"] += y
        return d["a"] * x + d["b"] * y


class Sums(nn.Module):
    def forward(self, x, y):
        a = b = 0
        a += x
        b += y
        a += y
        b += x
        a -= b * 2
        return a * x + b * y


class Consts(nn.Module):
    def forward(self, x):
        ts = [torch.tensor([1.0, 2.0, 3.0]) for _ in range(2)]
        for t in ts:
            t += 1
            x = x * t
        return x


class Feats(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        feats = []
        for i in range(3):
            x = self.fc(x)
            feats.append(x)
        res = feats[-1]
        for f in feats[:-1]:
            res = res + f
        total = None
        for f in feats:
            if total is None:
                total = f * 1
            else:
                total += f
        return res * total * feats[0]


class Closure(nn.Module):
    def forward(self, x, y):
        def run(a):
            total = 0
            for t in (a, y):
                total += t
            return total

        return run(x) * run(x * y) * x


class WithLambda(nn.Module):
    def forward(self, x, y):
        f = lambda a, b: a + b
        t = f(x, 0)
        t += y
        return t * x


class Cond(nn.Module):
    def forward(self, x, y):
        t = x + y if x.shape[0] > 5 else x + 0
        t += y
        return t * x


class Unpack(nn.Module):
    def forward(self, x):
        a, b = x[0] + 0, x[1] * 2
        a += b
        b -= a
        return a * x + b


class Walrus(nn.Module):
    def forward(self, x):
        t = x + 0.0
        t *= 3
        t /= 2
        t -= x
        return t * x


class Chain(nn.Module):
    def forward(self, x, y):
        s = 0
        s += x
        r = s + 0
        r += y
        return s * r * x


class Kept(nn.Module):
    def forward(self, x, y):
        kept = []
        s = 0
        for t in (x, y, x * y):
            s += t
            kept.append(s * 1)
        return kept[0] * kept[1] * kept[2] + s


class WhileSum(nn.Module):
    def forward(self, x):
        s, i = 0, 0
        while i < 3:
            s += x * i + 0
            i += 1
        return s * x


class SumBuiltin(nn.Module):
    def forward(self, x, y):
        s = sum([x])
        s += y
        u = sum(t for t in (x, y))
        u *= x
        return s * x + u


class Opt(nn.Module):
    def forward(self, x, y=None, z=None):
        out = x
        if y is not None:
            out = out + y
        if z is not None:
            out += z
        return out * x


class Method(nn.Module):
    def acc(self, parts):
        loss = 0
        for p in parts:
            loss += p
        return loss

    def forward(self, x, y):
        return self.acc([x, y]) * self.acc((x * y, x)) * x
