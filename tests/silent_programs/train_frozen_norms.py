# Graph mode compiles once for each mode of the whole: norms that are frozen later have to count.
#: script
import torch, torch.nn as nn, torch.nn.functional as F
from labkit import fill

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.head = nn.Linear(4, 2)
    def forward(self, x):
        return self.head(self.backbone(x))

def set_bn_eval(m):
    if isinstance(m, nn.BatchNorm1d):
        m.eval()

net = Net()
fill(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.arange(12.).reshape(4, 3).sin()
y = torch.tensor([0, 1, 1, 0])
for epoch in range(5):
    net.train()
    if epoch >= 2:
        for m in net.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.eval()
    if epoch == 4:
        net.apply(set_bn_eval)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    net.eval()
    with torch.no_grad():
        print(loss.item(), net(x).sum().item(), net.backbone[1].running_mean.sum().item())
