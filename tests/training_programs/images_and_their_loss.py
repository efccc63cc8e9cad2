"""In: two models. Out: losses: the generator's has a part of its images that no Module computes."""

import numpy as np
import torch
import torch.nn as nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 6), nn.Tanh())
        self.d = nn.Sequential(nn.Linear(6, 10), nn.LeakyReLU(0.2), nn.Linear(10, 1))


def build():
    return Both()


class Pair:
    def __init__(self, generator, discriminator):
        self.netG, self.netD = generator, discriminator
        self.adversarial, self.pixels = nn.BCEWithLogitsLoss(), nn.L1Loss()
        self.optimizer_G = torch.optim.Adam(self.netG.parameters(), lr=0.01)
        self.optimizer_D = torch.optim.Adam(self.netD.parameters(), lr=0.01)

    def forward(self, z, real):
        self.real = real
        self.fake = self.netG(z)

    def backward_D(self):
        fake, real = self.netD(self.fake.detach()), self.netD(self.real)
        self.loss_D = self.adversarial(fake, torch.zeros_like(fake))
        self.loss_D = self.loss_D + self.adversarial(real, torch.ones_like(real))
        self.loss_D.backward()

    def backward_G(self):
        fake = self.netD(self.fake)
        self.loss_G_GAN = self.adversarial(fake, torch.ones_like(fake))
        self.loss_G_L1 = self.pixels(self.fake, self.real) * 10.0
        self.loss_G = self.loss_G_GAN + self.loss_G_L1
        self.loss_G.backward()

    def step(self, z, real):
        self.forward(z, real)
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()


def run(both):
    rng = np.random.RandomState(3)
    pair = Pair(both.g, both.d)
    losses = []
    for _ in range(5):
        z = torch.from_numpy(rng.randn(8, 4).astype(np.float32))
        real = torch.from_numpy(rng.rand(8, 6).astype(np.float32))
        pair.step(z, real)
        losses.append([pair.loss_D.item(), pair.loss_G_GAN.item(), pair.loss_G_L1.item()])
    return {"losses": losses}
