"""Two steps in turn, the second on a detached result of the first (a GAN's order)."""

import torch
from torch import nn


def build():
    return nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 1)])


def run(nets, data):
    maker, judge = nets[0], nets[1]
    criterion = nn.BCEWithLogitsLoss()
    opt_m = torch.optim.SGD(maker.parameters(), lr=0.1)
    opt_j = torch.optim.SGD(judge.parameters(), lr=0.1)
    losses = []
    for x, _ in data:
        one, zero = torch.ones(x.size(0), 1), torch.zeros(x.size(0), 1)
        opt_m.zero_grad()
        made = maker(x)
        m_loss = criterion(judge(made), one)
        m_loss.backward()
        opt_m.step()
        opt_j.zero_grad()
        j_loss = criterion(judge(x), one) + criterion(judge(made.detach()), zero)
        j_loss.backward()
        opt_j.step()
        losses += [m_loss.item(), j_loss.item()]
    return losses
