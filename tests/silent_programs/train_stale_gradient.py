# Frozen without clearing: torch still updates by the old gradient (set_to_none=False).
#: script
import torch
import torch.nn as nn
from labkit import fill

net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
fill(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
for step in range(6):
    if step == 2:
        net[0].requires_grad_(False)
    if step == 4:
        for p in net[0].parameters():
            p.requires_grad = True
    opt.zero_grad(set_to_none=step == 3)
    loss = net(torch.ones(2, 3)).pow(2).mean()
    loss.backward()
    opt.step()
    print(loss.item(), net[0].weight.sum().item(), net[1].weight.sum().item())
