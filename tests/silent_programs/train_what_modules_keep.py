# The loss is made from what running a Module keeps: a field, a bare call, a hook's dictionary.
#: script
import torch
import torch.nn as nn
import torch.nn.functional as F
from labkit import fill

features = {}


def keeping(name):
    def hook(module, inputs, output):
        features[name] = output

    return hook


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(4, 2)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        self.penalty = h.abs().mean()
        return self.b(h)


x = torch.arange(6.).view(2, 3) * 0.3 - 0.5

net = Sparse()
fill(net)
opt1 = torch.optim.SGD(net.parameters(), lr=0.5)
for _ in range(3):
    opt1.zero_grad()
    net(x)
    score = 0
    for part in [net]:
        score += part.penalty
    loss = score * 2
    loss.backward()
    opt1.step()
    print(score.item(), net.a.weight.sum().item())

other = Sparse()
fill(other)
opt2 = torch.optim.SGD(other.parameters(), lr=0.5)
for _ in range(3):
    out = other(x)
    extra = other.penalty
    loss = F.mse_loss(out, x[:, :2]) + 0.3 * extra
    opt2.zero_grad()
    loss.backward()
    opt2.step()
    print(loss.item(), extra.item(), other.a.weight.sum().item())

third = Sparse()
fill(third)
third.a.register_forward_hook(keeping("a"))
opt3 = torch.optim.SGD(third.parameters(), lr=0.5)
for _ in range(3):
    out = third(x)
    kept = features["a"]
    loss = F.mse_loss(out, x[:, :2]) + kept.pow(2).mean()
    opt3.zero_grad()
    loss.backward()
    opt3.step()
    print(loss.item(), kept.sum().item(), third.a.weight.sum().item())
