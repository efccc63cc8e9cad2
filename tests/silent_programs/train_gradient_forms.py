# Forms in which gradients are changed between backward and step.
#: script
import torch
import torch.nn as nn
from labkit import fill

net = nn.Linear(3, 2)
fill(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
mask = torch.tensor([[1., 0., 1.], [0., 1., 1.]])
for i in range(4):
    loss = net(torch.ones(2, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    net.weight.grad *= (mask)
    net.weight.grad.data += (0.01 * net.weight.data)
    net.bias.grad.data -= net.bias * (0.1 + 0.2)
    net.weight.grad[0] = 0.5
    net.weight.grad.data[1, 0] *= 2
    net.bias.grad /= (2
                      + i)
    opt.step()
    print(loss.item(), net.weight.sum().item(), net.bias.sum().item())
