# Steps whose statements share a line, and weights that belong to no Module.
#: script
import copy, math
import torch, torch.nn as nn, torch.nn.functional as F
from labkit import fill

def data():
    x = torch.arange(24.).reshape(8, 3).sin()
    y = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])
    return x, y

def build():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    fill(net)
    return net

net = build(); x, y = data()
log_vars = nn.Parameter(torch.zeros(2))
opt = torch.optim.Adam([{"params": net.parameters()}, {"params": [log_vars], "lr": 0.1}], lr=0.01)
for i in range(3):
    out = net(x)
    l1 = F.cross_entropy(out, y); l2 = out.pow(2).mean()
    loss = torch.exp(-log_vars[0]) * l1 + log_vars[0] + torch.exp(-log_vars[1]) * l2 + log_vars[1]
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item(), log_vars.tolist())
