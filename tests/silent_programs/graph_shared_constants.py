# What host code changes under another name than compiled code reads it by.
#: script
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn as nn

CONFIG = {"scale": 2.0, "layers": [1, 2]}
WEIGHT = np.array([1.0, 2.0], dtype=np.float32)


def schedule():
    state = {"t": 1.0}

    def now():
        return state["t"]

    def advance():
        state["t"] *= 2

    return now, advance


now, advance = schedule()


class Net(nn.Module):
    def __init__(self, sizes, table, space):
        super().__init__()
        self.sizes = sizes
        self.table = table
        self.space = space
        self.depth = 1

    def forward(self, x):
        for s in (*self.sizes, *CONFIG["layers"]):
            x = x + s
        x = x * self.table["k"] * CONFIG["scale"] * now() * self.space.gain
        return x * self.depth + torch.tensor(WEIGHT).sum()


def raised(table, by):
    table["k"] += by


sizes, table, space = [1, 2], {"k": 2}, SimpleNamespace(gain=1.0)
net, x = Net(sizes, table, space), torch.zeros(1)
seen = []


def show():
    seen.append(net(x).item())
    print(seen[-1])


show()
sizes.append(10)
show()
raised(table, 1)
show()
layers = CONFIG["layers"]
layers[0] = 7
show()
CONFIG["layers"].append(5)
show()
advance()
show()
space.gain = 3.0
show()
WEIGHT[0] = 50.0
show()
net.__dict__["depth"] = 2
show()
