"""In: two networks. Out: their losses: labels filled in place between two losses, as in dcgan."""

import numpy as np
import torch
import torch.nn as nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(
            nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5)
        )
        self.d = nn.Sequential(nn.Linear(5, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), nn.Sigmoid())


def build():
    return Both()


real_label = 1
fake_label = 0


def run(model):
    netG, netD = model.g, model.d
    criterion = nn.BCELoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=0.01, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=0.01, betas=(0.5, 0.999))
    rng = np.random.RandomState(0)
    found = []
    for _ in range(5):
        data = torch.from_numpy(rng.randn(6, 5).astype(np.float32))
        netD.zero_grad()
        batch_size = data.size(0)
        label = torch.full((batch_size, 1), real_label, dtype=data.dtype)

        output = netD(data)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()

        noise = torch.from_numpy(rng.randn(batch_size, 3).astype(np.float32))
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()

        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake)
        errG = criterion(output, label)
        errG.backward()
        D_G_z2 = output.mean().item()
        optimizerG.step()
        found += [errD.item(), errG.item(), D_x, D_G_z1, D_G_z2]
    return found
