"""In: a model. Out: its losses: a generator with moving statistics whose images serve twice."""

import numpy as np
import torch
import torch.nn as nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(
            nn.Linear(4, 10, bias=False), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 6)
        )
        self.d = nn.Sequential(nn.Linear(6, 10), nn.LeakyReLU(0.2), nn.Linear(10, 1), nn.Sigmoid())


def build():
    return Both()


def run(both):
    netG, netD = both.g, both.d
    criterion = nn.BCELoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=0.01, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=0.01, betas=(0.5, 0.999))
    rng = np.random.RandomState(3)
    history = []
    for _ in range(12):
        real = torch.from_numpy(rng.rand(8, 6).astype(np.float32))
        valid, invalid = torch.ones(8), torch.zeros(8)
        netD.zero_grad()
        output = netD(real).view(-1)
        errD_real = criterion(output, valid)
        errD_real.backward()
        D_x = output.mean().item()
        noise = torch.from_numpy(rng.randn(8, 4).astype(np.float32))
        fake = netG(noise)
        output = netD(fake.detach()).view(-1)
        errD_fake = criterion(output, invalid)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()
        netG.zero_grad()
        output = netD(fake).view(-1)
        errG = criterion(output, valid)
        errG.backward()
        optimizerG.step()
        history.append([errD.item(), errG.item(), D_x, D_G_z1])
    return {"history": history}
