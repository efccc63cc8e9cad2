# What graph mode passes over without a word: right, or stopped, in both modes.
#: model A1() <- A(2,4)
#: model A2() <- A(2,4)
#: model A3() <- A(2,4)
#: model A4() <- A(2,4)
#: model A5() <- A(2,4)
#: model A6() <- A(2,4)
import torch
import torch.nn as nn


class C1(nn.Module):
    def __call__(self, x, scale=2.0):
        y = super().__call__(x)
        return y * scale

    def forward(self, x):
        return x + 1


class A1(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = C1()

    def forward(self, x):
        return self.c(x, scale=3.0) + self.c(x)


class C2(nn.Linear):
    def __call__(self, x):
        return super(C2, self).__call__(x).relu()


class A2(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = C2(4, 4)

    def forward(self, x):
        return self.c(x)


class C3(nn.Module):
    def __call__(self, x):
        return self.forward(x) * 2

    def forward(self, x):
        return x + 1


class A3(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = C3()

    def forward(self, x):
        return self.c(x)


class Base(nn.Module):
    def __call__(self, *args, **kwargs):
        out = super().__call__(*args, **kwargs)
        return out + 10


class C4(Base):
    def forward(self, x):
        return x * 2


class A4(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = C4()

    def forward(self, x):
        return self.c(x)


class C5(nn.Module):
    def __call__(self, x):
        return x * 7


class A5(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = C5()

    def forward(self, x):
        return self.c(x)


class A6(nn.Module):
    def __call__(self, x):
        return super().__call__(x * 2)

    def forward(self, x):
        return x + 1
