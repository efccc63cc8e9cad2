# Weights are freed by name at an epoch, Adam with weight decay and a schedule.
#: script
import torch
import torch.nn as nn
from labkit import fill


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(3, 4)
        self.block = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.block(torch.tanh(self.stem(x)))))


def train(net, epochs):
    for name, param in net.named_parameters():
        param.requires_grad = name.startswith("head")
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    for epoch in range(epochs):
        if epoch == 2:
            for name, param in net.named_parameters():
                if "block" in name:
                    param.requires_grad = True
        if epoch == 4:
            for param in net.parameters():
                param.requires_grad = True
        for i in range(2):
            x = torch.arange(6.).view(2, 3) * 0.1 + i
            optimizer.zero_grad()
            loss = (net(x) - 1).pow(2).mean()
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(epoch, loss.item(), *[p.abs().sum().item() for p in net.parameters()])


net = Net()
fill(net)
train(net, 6)
