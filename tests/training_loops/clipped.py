"""ClippedTrainStep with its norm, over all weights and over some."""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def run(net, data):
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = criterion(net(x), y * 5)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
        losses.append(norm.item())
    return losses
