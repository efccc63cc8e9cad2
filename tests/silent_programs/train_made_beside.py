# A Module that is made beside its loss has gradients; a function without an update keeps its name.
#: script
import torch
import torch.nn as nn


def gradient(x):
    net = nn.Linear(3, 1)
    loss = net(x).sum()
    loss.backward()
    return net.weight.grad


def twice(x):
    found = gradient(x)
    return found * 2


print(twice(torch.ones(2, 3)).tolist(), gradient.__name__, gradient(torch.ones(1, 3)).tolist())
