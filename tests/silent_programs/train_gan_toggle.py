# A GAN freezes the discriminator for the generator's step and frees it for its own.
#: script
import torch
import torch.nn as nn
from labkit import fill


class Gan:
    def __init__(self):
        self.netG = nn.Linear(2, 3)
        self.netD = nn.Linear(3, 1)
        fill(self.netG)
        fill(self.netD)
        self.optG = torch.optim.Adam(self.netG.parameters(), lr=0.05, betas=(0.5, 0.999))
        self.optD = torch.optim.Adam(self.netD.parameters(), lr=0.05, betas=(0.5, 0.999))

    def set_requires_grad(self, nets, requires_grad=False):
        if not isinstance(nets, list):
            nets = [nets]
        for net in nets:
            if net is not None:
                for param in net.parameters():
                    param.requires_grad = requires_grad

    def step(self, z, real):
        fake = self.netG(z)
        self.set_requires_grad(self.netD, True)
        self.optD.zero_grad()
        loss_d = (self.netD(real) - 1).pow(2).mean() + self.netD(fake.detach()).pow(2).mean()
        loss_d.backward()
        self.optD.step()
        self.set_requires_grad(self.netD, False)
        self.optG.zero_grad()
        loss_g = (self.netD(fake) - 1).pow(2).mean()
        loss_g.backward()
        self.optG.step()
        return loss_d.item(), loss_g.item()


gan = Gan()
for i in range(4):
    print(*gan.step(torch.ones(2, 2) * i, torch.ones(2, 3) * 0.5 * i))
