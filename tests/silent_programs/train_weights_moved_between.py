# Weights are moved between two backwards without a look at gradients.
#: script
import torch
import torch.nn as nn
from labkit import fill

net = nn.Linear(3, 1)
fill(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def shift(model, by):
    for p in model.parameters():
        p.data.add_(by)


class Shifter:
    def __init__(self, model):
        self.model = model

    def push(self, by):
        shift(self.model, by)


shifter = Shifter(net)
for i in range(3):
    x = torch.ones(2, 3) * (i + 1)
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    shifter.push(0.1)
    adv = net(x).pow(2).mean()
    adv.backward()
    shifter.push(-0.1)
    opt.step()
    print(loss.item(), adv.item(), net.weight.sum().item())
