# The mode of a Module inside another, set by every way in which host code reaches it.
#: script
import torch, torch.nn as nn
from labkit import fill

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.BatchNorm1d(3)
        self.b = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
    def forward(self, x):
        return self.b(self.a(x))

class Runner:
    def __init__(self, model):
        self.model = model
    def freeze(self, part):
        part.eval()
    def run(self, x):
        return self.model(x).sum(1)[0].item()

x = torch.arange(12.).reshape(4, 3).sin()
net = Net()
fill(net)
r = Runner(net)
print(r.run(x))
net.a.eval()
print(r.run(x))
r.freeze(net.b)
print(r.run(x))
net.train()
print(r.run(x))
r.model.b[0].train(False)
print(r.run(x))
r.model.eval()
print(r.run(x))
net.a.train()
print(r.run(x))
for name, child in net.named_children():
    child.train(name == "b")
print(r.run(x))
seq = nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3))
print(seq(x)[0, 1].item())
seq[0].eval()
print(seq(x)[0, 1].item())
seq[0].training = True
seq[1].training = False
print(seq(x)[0, 1].item(), seq[1].running_mean[1].item())
