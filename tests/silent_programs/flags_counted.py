# What is flagged in the text of a training step is counted, and stops.
#: script
import torch
import torch.nn as nn
from labkit import fill

net = nn.Linear(3, 1)
fill(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    loss = net(torch.ones(2, 3)).mean()
    loss = loss + 0.1 * sum(p.pow(2).sum() for p in net.parameters())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
