# Modules of another file, handed from one function to the next; the mode that was is set again.
#: script
import copy

import torch
import torch.nn as nn

import nets
from nets import make


def evaluate(model, x):
    was = model.training
    model.eval()
    out = model(x).sum().item()
    model.train(was)
    return out


def twice(model, x):
    return model(x).sum().item(), model(x).sum().item()


def main():
    x = torch.arange(12.).view(4, 3)
    net = make(3)
    print(evaluate(net, x), twice(net, x))
    other = nets.Gate(0.5)
    print(twice(other, x))
    again = copy.deepcopy(other)
    other.eval()
    print(twice(again, x), twice(other, x))
    head = nets.Gate(2.0)
    whole = nn.Sequential(net, head)
    print(twice(whole, x))
    whole.eval()
    whole.add_module("2", nets.Gate(3.0))
    print(twice(whole, x))
    net.extra = nets.Gate(4.0)
    print(net.extra(x).sum().item())


if __name__ == "__main__":
    main()
