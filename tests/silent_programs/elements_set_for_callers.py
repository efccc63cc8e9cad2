# A function sets elements of the tensor that its caller passes and reads again, or of a view.
import torch
from torch import nn


def shift(bins, eps=0.1):
    bins[..., -1] += eps
    return bins.sum()


def within(bins):
    return shift(bins, 0.3) * 2


def choose(bins, flag):
    if flag:
        bins[0] = 7
    return bins


#: model Whole() <- A(3, 4)
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        bins = torch.cumsum(x * self.w, -1)
        total = shift(bins)
        other = bins.exp()
        return bins * total + other


#: model Nested() <- A(3, 4)
class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        bins = x * self.w
        same = bins
        total = within(bins)
        return same * total + bins


#: model Chosen() <- A(3, 4)
class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        bins = x * self.w
        back = choose(bins, True)
        return back * 2 + bins


def set_view(bins):
    bins[0] = 3
    return bins.sum()


#: model Viewed() <- A(3, 4)
class Viewed(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        bins = x * self.w
        total = set_view(bins.view(-1))
        return bins * total


def set_whole(bins):
    bins[1] = 3
    return bins.sum()


#: model Views() <- A(3, 4)
class Views(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        bins = x * self.w
        row = bins[1]
        total = set_whole(bins)
        return bins * total + row


def both(bins, other):
    other *= 2
    bins[0] = 4
    return bins.sum()


def handed(bins, other):
    return both(bins, other)


#: model Both() <- A(3, 4)
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        bins = x * self.w
        other = x * 3
        total = handed(bins, other)
        return bins * total + other


def looped(bins):
    part = bins
    for _ in range(2):
        part[0] = 5
        part = part[:2]
    return bins.sum()


#: model Looped() <- A(3, 4)
class Looped(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        bins = x * self.w
        total = looped(bins)
        return bins * total
