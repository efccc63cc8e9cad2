# An autograd Function that bprop has no counterpart for stays one: class methods, inheritance, lists.
import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Bisect(Function):
    @classmethod
    def _p(cls, x, a):
        return torch.clamp(x, min=0) ** a

    @classmethod
    def forward(cls, ctx, X, a=2.0, dim=-1):
        ctx.dim = dim
        ctx.a = a
        y = cls._p(X, a)
        y /= y.sum(dim=dim, keepdim=True) + 1
        ctx.save_for_backward(y)
        return y

    @classmethod
    def backward(cls, ctx, dY):
        y, = ctx.saved_tensors
        q = (dY * y).sum(ctx.dim, keepdim=True)
        return dY * y - q * ctx.a, None, None


class Sub(Bisect):
    @classmethod
    def _p(cls, x, a):
        return x.abs()

    @classmethod
    def forward(cls, ctx, X, dim=-1):
        return super().forward(ctx, X, a=1.0, dim=dim)

    @classmethod
    @once_differentiable
    def backward(cls, ctx, dY):
        return dY * 2, None


class Lists(Function):
    @staticmethod
    def forward(ctx, run, n, *xs):
        ctx.run = run
        ctx.n = n
        ctx.xs = [x.detach() for x in xs]
        with torch.no_grad():
            return tuple(run(x) for x in xs)

    @staticmethod
    def backward(ctx, *gs):
        return (None, None) + tuple(g * ctx.n for g in gs)


class Setup(Function):
    @staticmethod
    def forward(x, k):
        return x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, k = inputs
        ctx.k = k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k * 3, None


#: model Net() <- A(3, 4)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        a = Bisect.apply(self.fc(x), 2.0, -1)
        b = Sub.apply(x)
        c, d = Lists.apply(torch.sin, 3, x, self.fc(x))
        return a + b, c + d, Setup.apply(x, 2)
