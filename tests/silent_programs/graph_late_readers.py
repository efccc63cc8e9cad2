# Generators and functions read what is changed later; arrays that are changed; __call__ of a layer.
import numpy as np
import torch
from torch import nn


#: model Ge2() <- A(3, 4)
class Ge2(nn.Module):
    def forward(self, x):
        y = x * 1.5
        g = (y * i for i in range(3))
        y.mul_(2)
        return sum(g)


#: model N5() <- A(3, 4)
class N5(nn.Module):
    def forward(self, x):
        n = np.ones((3, 4), dtype=np.float32)
        t = torch.from_numpy(n[0])
        n *= 4
        return x * t


#: model N7() <- A(3, 4)
class N7(nn.Module):
    def forward(self, x):
        n = np.ones((3, 4), dtype=np.float32)
        m = n
        m *= 3
        m[0] += 2
        return x * torch.from_numpy(n)


#: model Ge6() <- A(3, 4)
class Ge6(nn.Module):
    def forward(self, x):
        y = x * 1.5
        f = lambda: y + 1
        y.mul_(2)
        return f()


#: model Ge7() <- A(3, 4)
class Ge7(nn.Module):
    def forward(self, x):
        y = x * 1.5

        def f():
            return y + 1

        y[0] = 2
        return f()


class Loud(nn.Linear):
    def __call__(self, x):
        return super().__call__(x) * 2


class Loud(nn.Linear):
    def __call__(self, x):
        return super().__call__(x) * 2


#: model Ca() <- A(4, 6)
class Ca(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = Loud(6, 6)

    def forward(self, x):
        return self.l(x) + self.l.forward(x) * 3
