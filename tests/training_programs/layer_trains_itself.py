"""In: layers that train one after another by `self.forward`. Out: losses and what they give."""

import numpy as np
import torch
from torch import nn


class Layer(nn.Linear):
    def __init__(self, width, out):
        super().__init__(width, out)
        self.relu = nn.ReLU()
        self.opt = torch.optim.Adam(self.parameters(), lr=0.03)
        self.threshold = 2.0

    def forward(self, x):
        x = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return self.relu(torch.mm(x, self.weight.T) + self.bias.unsqueeze(0))

    def fit(self, pos, neg, losses):
        for _ in range(4):
            g_pos = self.forward(pos).pow(2).mean(1)
            g_neg = self.forward(neg).pow(2).mean(1)
            apart = torch.cat([-g_pos + self.threshold, g_neg - self.threshold])
            loss = torch.log1p(torch.exp(apart)).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        return self.forward(pos).detach(), self.forward(neg).detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Layer(4, 6)
        self.second = Layer(6, 5)

    def fit(self, pos, neg):
        losses = []
        for layer in (self.first, self.second):
            pos, neg = layer.fit(pos, neg, losses)
        return losses, pos.sum().item(), neg.sum().item()


def build():
    return Net()


def run(model):
    rng = np.random.RandomState(0)
    pos, neg = (torch.from_numpy(rng.randn(8, 4).astype(np.float32)) for _ in range(2))
    losses, good, bad = model.fit(pos, neg)
    return {"losses": losses, "good": good, "bad": bad}
