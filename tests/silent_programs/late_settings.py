# Settings of layers that host code changes after the first call: graphs keep the old ones.
#: script
import torch, torch.nn as nn
from labkit import fill

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.act = nn.LeakyReLU(0.1)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.0)
        self.norm = nn.GroupNorm(1, 2)
    def forward(self, x):
        return self.drop(self.norm(self.pool(self.act(self.conv(x)))))

net = Net()
fill(net)
x = torch.arange(100.).reshape(1, 2, 5, 10).sin()
print(net(x).sum().item())
net.conv.stride = (1, 2)
print(net(x)[0, 0, 0].tolist())
net.pool.ceil_mode = True
print(net(x)[0, 0].tolist())
net.norm.eps = 0.5
print(net(x)[0, 0, 0].tolist())
net.act = nn.Identity()
print(net(x)[0, 0, 0].tolist())
net.norm = nn.Sequential(nn.Identity(), nn.Tanh())
print(net(x)[0, 0, 0].tolist())
net.conv.weight.data.mul_(2)
print(net(x)[0, 0, 0].tolist())
for m in net.modules():
    if isinstance(m, nn.Conv2d):
        m.stride = 1
print(net(x)[0, 0, 0].tolist())
