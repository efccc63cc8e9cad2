# A train of its own is no part of building a Module; BatchNorms whose settings come later.
#: script
import torch, torch.nn as nn
from labkit import fill

class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.bn = nn.BatchNorm1d(c)
        self.drop = nn.Dropout(0.0)
    def forward(self, x):
        return self.drop(self.bn(x)) if self.training else self.bn(x) * 2

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(3) for _ in range(2)])
    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x
    def train(self, mode=True):
        super().train(mode)
        self.blocks[0].eval()
        return self

def evaluate(model, x):
    was = model.training
    model.eval()
    with torch.no_grad():
        out = model(x).sum().item()
    model.train(was)
    return out

net = Net()
fill(net)
x = torch.arange(12.).reshape(4, 3) / 5
print(net(x).sum().item())
print(evaluate(net, x))
print(net(x)[0, 0].item(), net.training, net.blocks[0].training)
net.train()
print(net(x)[0, 1].item(), net.blocks[0].training, net.blocks[1].training)
print(evaluate(net, x))
for m in net.modules():
    if isinstance(m, nn.BatchNorm1d):
        m.momentum = 0.5
        m.eps = 0.1
net.train()
print(net(x)[1, 1].item())
print(net.blocks[1].bn.running_mean.sum().item())
net.apply(lambda m: m.eval() if isinstance(m, nn.BatchNorm1d) else None)
print(net(x)[1, 2].item())
print(nn.BatchNorm1d(3)(x).sum(0)[1].item() + nn.functional.dropout(x, 0.0).sum().item())
