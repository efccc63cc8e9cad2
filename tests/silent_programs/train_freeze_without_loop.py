# No loop: the layer is freed between the optimizer and the training function.
#: script
import torch
import torch.nn as nn
from labkit import fill


def toggle(layers, on):
    for layer in layers:
        layer.requires_grad_(on)


def run(net, opt, steps):
    for _ in range(steps):
        opt.zero_grad()
        loss = net(torch.ones(2, 3)).pow(2).mean()
        loss.backward()
        opt.step()
    return loss.item()


net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
fill(net)
toggle([net[0]], False)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.05)
print(run(net, opt, 2), net[0].weight.sum().item())
toggle([net[0]], True)
print(run(net, opt, 2), net[0].weight.sum().item())
toggle([net[0]], False)
print(run(net, opt, 2), net[0].weight.sum().item())
