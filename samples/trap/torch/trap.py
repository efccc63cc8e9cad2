# coding: utf-8
"""Things that look like torch and are not, and torch where one does not expect it.

The text here mentions torch.cat(x, 1) and x.view(-1), and must stay as it is.
"""
import numpy as np, torch  # two imports on one line: only one of them goes
import torch.nn as nn, torch.nn.functional as F
from torch.nn import (
    Linear as Dense,  # the name of MindSpore's own layer
    Module,
)


class Tensor:
    """A user's own class: its methods are not torch's."""

    def __init__(self, values):
        self.values = values

    def view(self, *shape):
        return ("my view", shape)

    def permute(self, *order):
        return [self.values[i] for i in order]

    def size(self):
        return len(self.values)


def cat(*words):
    """A user's own function with a famous name."""
    return " ".join(words)


def relu(x):  # shadows nothing: F.relu is always spelled in full below
    return max(x, 0)


class Registry(dict):
    def register_buffer(self, name, value):
        self[name] = value

    def train(self):
        return "choo"


def python_objects():
    """Lists, strings, dicts and arrays share method names with Tensor."""
    names = ["b", "a", "c"]
    names.sort()
    names.sort(key=len, reverse=True)
    first, rest = "a b c".split(" ", 1)
    table = {"a": 1, "b": 2}
    total = sum(table.values()) + names.index("a")
    words = cat(first, rest, *table.keys())
    array = np.arange(6).reshape(2, 3).astype("float32")
    array = array.transpose(1, 0).mean(axis=1).clip(0, 3).squeeze()
    mine = Tensor([3, 1, 2])
    order = mine.permute(2, 0, 1)
    registry = Registry()
    registry.register_buffer("x", mine.view(1, 2))
    return names, total, words, array.max(), order, mine.size(), relu(-1), registry.train()


def shadowed(x):
    torch = np  # from here on "torch" is numpy
    y = torch.zeros((2, 3)) + torch.abs(x)
    return torch.concatenate([y, y]).sum(axis=0)


def shadowed_by_parameter(torch, F):
    return torch.cat + F.relu


def in_a_comprehension(modules):
    return [nn.children for nn in modules]


def by_name(name, *args, **kwargs):
    """Which function this is, nobody knows before it runs."""
    fn = getattr(torch, name)
    return fn(*args, **kwargs)


def forwarded(*args, **kwargs):
    # how many arguments arrive is the caller's affair
    return nn.Conv2d(*args, **kwargs)


def evaluated_once(queue):
    # an argument with an effect must be evaluated exactly once, and in this order
    return F.leaky_relu(queue.pop(), negative_slope=queue.pop())


class Odd(nn.Module):
    stride = (lambda k: (k - 1) // 2)(5)  # 2, and the parentheses matter

    def __init__(this, width=4, *, act=F.gelu):
        super(Odd, this).__init__()
        (this.conv) = nn.Conv2d(  # a comment after the bracket
            3, width,  # one between the arguments
            3,
            padding=(3 - 1) // 2  # and one after the last, without a comma
        )
        this.dense = Dense(width, 5); this.act = act
        this.modes = "train eval".split()
        this.sizes = {"cpu": 1, "cuda": 2}

    # the first parameter is not called self
    def forward(this, x, *, scale: "torch.Tensor" = None):
        """Sizes are read once; the list of parts is sorted by Python."""
        b, _, h, w = x.size(); k = this.stride
        y = this.act(this.conv(x))[
            :, :, ::k  # every other row
        ]
        y = y.mean((2, 3)) if h * w > 1 else y.view(b, -1)
        if scale is not None: y = y * scale
        parts = [y, -y]
        parts.reverse()
        flip = not sorted(this.sizes.values())[0]
        text = 'torch.relu(x) inside a string' f"{b} and x.view({k})"
        return \
            this.dense(
                torch.stack(parts, 0)
                .sum(0) if flip or not text else parts[-1]  # a chain over two lines
            )


def lazily():
    import torch as th
    from torch import cat as join

    return join([th.ones(1, 2), th.zeros(1, 2)], dim=0)


x = 1;  y = torch.tensor([1., 2.]) ; z = x if True else torch.nan  # spaces as the author left them


if __name__ == '__main__':
    print(python_objects())
    print(Odd()(torch.randn(2, 3, 8, 8)).shape, lazily().shape, by_name('ones', 2).shape)
    print(shadowed(np.ones((2, 3))), evaluated_once([0.1, y]))
