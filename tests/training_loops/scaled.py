"""ScaledTrainStep: the scale grows every fourth step."""

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def run(net, data):
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=4)
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        losses.append(scaler.get_scale())
    return losses
