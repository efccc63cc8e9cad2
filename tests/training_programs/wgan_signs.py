"""In: two networks. Out: their losses: the gradient that a backward starts with is its sign."""

import numpy as np
import torch
import torch.nn as nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5))
        self.d = nn.Sequential(nn.Linear(5, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))


def build():
    return Both()


def run(model):
    netG, netD = model.g, model.d
    one = torch.FloatTensor([1])
    mone = one * -1
    optimizerD = torch.optim.RMSprop(netD.parameters(), lr=0.01)
    optimizerG = torch.optim.RMSprop(netG.parameters(), lr=0.01)
    rng = np.random.RandomState(0)
    found = []
    for _ in range(4):
        for p in netD.parameters():
            p.requires_grad = True
        for _step in range(2):
            for p in netD.parameters():
                p.data.clamp_(-0.1, 0.1)
            data = torch.from_numpy(rng.randn(6, 5).astype(np.float32))
            noise = torch.from_numpy(rng.randn(6, 3).astype(np.float32))
            netD.zero_grad()
            errD_real = netD(data).mean(0).view(1)
            errD_real.backward(one)
            fake = netG(noise).detach()
            errD_fake = netD(fake).mean(0).view(1)
            errD_fake.backward(mone)
            errD = errD_real - errD_fake
            optimizerD.step()
            found.append(errD.item())
        for p in netD.parameters():
            p.requires_grad = False
        netG.zero_grad()
        noise = torch.from_numpy(rng.randn(6, 3).astype(np.float32))
        errG = netD(netG(noise)).mean(0).view(1)
        errG.backward(one)
        optimizerG.step()
        found.append(errG.item())
    return found
