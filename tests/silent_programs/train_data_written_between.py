# What the gradients are computed from is written between the loss and the backward.
#: script
import torch
import torch.nn as nn
import torch.nn.functional as F
from labkit import fill

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
fill(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [(torch.ones(2, 3) * (i + 1) * 0.1, torch.ones(2, 2)) for i in range(6)]
seen = []


class Log:
    def __init__(self):
        self.items = []

    def __call__(self, v):
        self.items.append(v.item())


logger = Log()
total, ema = 0.0, None
for i, (x, y) in enumerate(data):
    opt.zero_grad()
    out = net(x)
    loss = F.mse_loss(out, y)
    out.data.zero_()
    loss.backward()
    opt.step()
    print(loss.item(), net[0].weight.sum().item(), net[2].bias.sum().item(), total, seen, logger.items)
