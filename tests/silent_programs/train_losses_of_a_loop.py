# Losses that a loop puts into a list.
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


def log(v):
    seen.append(v.item())


logger = Log()
total, ema = 0.0, None
for i, (x, y) in enumerate(data):
    opt.zero_grad()
    out = net(x)
    losses = []
    for k in range(2):
        losses.append(F.mse_loss(out * (k + 1), y))
    loss = sum(losses)
    log(loss)
    loss.backward()
    opt.step()
    print(loss.item(), net[0].weight.sum().item(), net[2].bias.sum().item(), total, seen, logger.items)
