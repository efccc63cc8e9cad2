"""A flag in every position: the file is imported, the rest works, what is marked raises."""

from functools import partial, wraps
from typing import Optional

import apex
import numpy  # whose arrays have methods of the same names
import torch
import torch.nn as nn
from apex import Kind
from torch.nn.attention.flex_attention import BlockMask

VALUE = torch.nothing(3)
ENTRY = {"wrong": torch.nothing, "right": torch.relu, "list": [1, torch.nothing(3)]}
FIRST, SECOND = torch.nothing()
CHOSEN = 1 if VALUE is not None else torch.nothing(1)
MADE = [torch.nothing(i) for i in range(3)]
TEXT = f"{torch.nothing()}"
PART = partial(torch.nothing, 3)
later = lambda x: torch.nothing(x)


def annotated(a: Kind | None, b: Optional[Kind] = None, c: Kind["n"] = None) -> Kind:
    return a


def default(x, value=torch.nothing(3)):
    return value if x is None else x


@torch.nothing
def decorated(x):
    return x


@wraps(torch.nn.Module.cuda)
def wrapped(x):
    return x


class Derived(torch.nothing, metaclass=torch.nothing2):
    pass


class Based(torch.nothing):
    setting = 3


class Member:
    bad: torch.nothing = torch.nothing()
    good = 3

    @property
    @torch.nothing
    def both(self):
        return 3


def caught(x):
    try:
        return [1, 2][x]
    except torch.nothing.Error:
        return 5
    except (torch.nothing.Error, IndexError):
        return 7


def chosen(x, flag):
    return torch.nothing(x) if flag else x


def guarded(x, flag):
    return flag and torch.nothing(x)


def listed(xs):
    return [torch.nothing(x) for x in xs]


def called_later(x):
    return (lambda: torch.nothing(x)), x


def tested(x):
    if torch.nothing(x):
        return 1
    return 2


def second_test(x):
    if x > 0:
        return 1
    elif torch.nothing(x):
        return 2
    return 3


def looped(x):
    for _ in torch.nothing(x):
        x = x + 1
    return x


def entered(x):
    with torch.nothing(x):
        x = x + 1
    return x


def repeated(x):
    while torch.nothing(x):
        x = x + 1
    return x


def on_one_line(x):
    y = x; torch.nothing(y); return y


def asserted(x):
    assert x, torch.nothing(x)
    return x


def shown(x, flag):
    return f"{torch.nothing(x)}" if flag else "none"


def matched(x):
    match x:
        case 1:
            return 1
        case torch.nothing.ONE:
            return 2
    return 3


def nested(x):
    def inner(value=torch.nothing()):
        return value

    return inner


def closed(x):
    value = torch.nothing(x)

    def inner():
        nonlocal value
        value = 3

    inner()
    return value


class Top(nn.Module):
    def forward(self, x):
        y = x + 1
        torch.nothing(x)
        return y


class Behind(nn.Module):
    """A condition on the numbers."""

    def forward(self, x):
        y = x + 1
        if x.sum() > 1000:
            z = torch.nothing(x)
            y = z + 1
        return y


class Looped(nn.Module):
    def forward(self, x):
        for _ in range(2):
            torch.nothing(x)
        return x


class InMethod(nn.Module):
    def helper(self, x):
        torch.nothing(x)
        return x

    def forward(self, x):
        x = self.helper(x)
        return x + 1


class OneLine(nn.Module):
    def forward(self, x):
        y = x; torch.nothing(y); return y


class Chosen(nn.Module):
    def forward(self, x):
        return torch.nothing(x) if self.training else x


class WithoutGradient(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = torch.nothing(x)
            if self.training:
                y = y + 1
        return x


class Written(nn.Module):
    def forward(self, x):
        x = x * 1.0
        flat = x.view(-1)
        flat[::2] = 0.0
        return x


class Head(nn.Module):
    def forward(self, x):
        if torch.nothing(x):
            x = x + 1
        return x


def spread(x):
    return x.std(0)


class Unknown(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, x):
        chosen = self.parts.get_part(x)
        return x + chosen.std(0)


def is_masked(x):
    return isinstance(x, (torch.nn.attention.flex_attention.BlockMask, BlockMask, list))


def is_optimizer(x):
    return isinstance(x, torch.optim.Optimizer)


FLOAT8 = torch.float8_e4m3fn
LIMIT = -torch.finfo(FLOAT8).max if FLOAT8 is not None else 0
