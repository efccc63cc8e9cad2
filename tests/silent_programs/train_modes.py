# Modules that are run before their mode is set: training mode in torch.
#: script
import torch
import torch.nn as nn
from labkit import fill


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(self.fc(x))


class Scaled(nn.Module):
    def forward(self, x):
        return x * 2 if self.training else x


def build(kind):
    if kind == "net":
        return Net()
    return nn.Sequential(nn.BatchNorm1d(3), Scaled())


class Runner:
    def __init__(self, net=None):
        self.net = net if net is not None else Net()
        fill(self.net)

    def warm_up(self, x):
        return self.net(x).sum().item()

    def test(self, x):
        self.net.eval()
        return self.net(x).sum().item()


x = torch.arange(12.).view(4, 3) * torch.tensor([1., -2., 3.]) + 1
a = build("net")
fill(a)
print(a(x).abs().sum().item(), a.bn.running_mean.sum().item())
a.eval()
print(a(x).abs().sum().item())
b = build("other")
print(b(x).sum().item(), b[0].running_var.sum().item())
print(nn.Sequential(Scaled(), nn.BatchNorm1d(3))(x).abs().sum().item())
runner = Runner()
print(runner.warm_up(x), runner.test(x), runner.warm_up(x))
models = {"one": Scaled(), "two": nn.Sequential(Scaled(), Scaled())}
for name, model in models.items():
    print(name, model(x).sum().item())
models["two"].train(False)
print(models["two"](x).sum().item())
kinds = [Scaled, Net]
late = kinds[0]()
print(late(x).sum().item(), late.training)
