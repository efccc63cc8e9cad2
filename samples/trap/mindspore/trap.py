# coding: utf-8
"""Things that look like torch and are not, and torch where one does not expect it.

The text here mentions torch.cat(x, 1) and x.view(-1), and must stay as it is.
"""
import mindspore as ms
from mindspore import nn as ms_nn, numpy, ops
from torch_helpers import Conv2d, gelu, leaky_relu, strided
import numpy as np  # two imports on one line: only one of them goes
# the name of MindSpore's own layer


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
    # TODO(torch2ms API111): torch: its attribute is chosen when the program runs; name the functions that are meant
    # fn = getattr(torch, name)
    if True:
        raise NotImplementedError('torch2ms API111 torch')
    return fn(*args, **kwargs)


def forwarded(*args, **kwargs):
    # how many arguments arrive is the caller's affair
    return Conv2d(*args, **kwargs)


def evaluated_once(queue):
    # an argument with an effect must be evaluated exactly once, and in this order
    return leaky_relu(queue.pop(), negative_slope=queue.pop())


class Odd(ms_nn.Cell):
    stride = (lambda k: (k - 1) // 2)(5)  # 2, and the parentheses matter

    def __init__(self, width=4, *, act=gelu):
        super(Odd, self).__init__()
        (self.conv) = ms_nn.Conv2d(  # a comment after the bracket
            3, width,  # one between the arguments
            3, pad_mode='pad',
            padding=(3 - 1) // 2, has_bias=True  # and one after the last, without a comma
        )
        self.dense = ms_nn.Dense(width, 5); self.act = act
        self.modes = "train eval".split()
        self.sizes = {"cpu": 1, "cuda": 2}

    # the first parameter is not called self
    def construct(self, x, *, scale: "ms.Tensor" = None):
        """Sizes are read once; the list of parts is sorted by Python."""
        b, _, h, w = x.shape; k = self.stride
        # every other row
        y = strided(self.act(self.conv(x)), 2, step=k)
        y = y.mean((2, 3)) if h * w > 1 else y.view(b, -1)
        if scale is not None: y = y * scale
        parts = [y, -y]
        parts.reverse()
        flip = not sorted(self.sizes.values())[0]
        text = 'torch.relu(x) inside a string' f"{b} and x.view({k})"
        return \
            self.dense(
                ops.stack(parts, 0)
                .sum(0) if flip or not text else parts[-1]  # a chain over two lines
            )


def lazily():

    return ops.cat([ops.ones((1, 2)), ops.zeros((1, 2))], axis=0)


x = 1;  y = ms.tensor([1., 2.]) ; z = x if True else numpy.nan  # spaces as the author left them


if __name__ == '__main__':
    print(python_objects())
    print(Odd()(ops.randn(2, 3, 8, 8)).shape, lazily().shape, by_name('ones', 2).shape)
    print(shadowed(np.ones((2, 3))), evaluated_once([0.1, y]))
