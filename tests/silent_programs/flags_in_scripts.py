# What a script does at its own level is not left out: hooks and settings that nothing stands for.
#: script
import torch
from labkit import fill

net = torch.nn.Linear(3, 2)
fill(net)
seen = []
x = torch.ones(2, 3)
handle = net.weight.register_hook(lambda g: g * 0.5)
net(x).sum().backward()
print(net.weight.grad.sum().item())
