#: script
# Gradients are cleared under a condition, the update is not: it stays where it was.
import torch
import torch.nn.functional as F
from torch import nn


def begun(seed):
    torch.manual_seed(seed)
    net = nn.Linear(3, 1)
    with torch.no_grad():
        net.weight.copy_(torch.linspace(-0.5, 0.7, 3).view(1, 3) * seed)
        net.bias.fill_(0.1)
    return net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)


x = torch.linspace(-1, 1, 12).view(4, 3)
y = x.sum(1, keepdim=True)

net, opt = begun(1)
for step in range(4):
    loss = F.mse_loss(net(x), y)
    loss.backward()
    if step == 1:
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    opt.step()
    if step != 0:
        opt.zero_grad()
    print(f"{loss.item():.5f}")


def early():
    net, opt = begun(2)
    for step in range(6):
        if step % 2 == 0:
            opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.5)
        opt.step()
        print(f"{loss.item():.5f}")


def asked(training):
    net, opt = begun(3)
    for step in range(4):
        loss = F.mse_loss(net(x), y)
        if training:
            loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 0.5)
            opt.step()
            if step != 0:
                opt.zero_grad()
        print(f"{loss.item():.5f}")


early()
asked(True)
