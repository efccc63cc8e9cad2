"""In: a model. Out: its losses: the images of the generator's step train the discriminator."""

import numpy as np
import torch
import torch.nn as nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 6), nn.Tanh())
        self.d = nn.Sequential(nn.Linear(6, 10), nn.LeakyReLU(0.2), nn.Linear(10, 1), nn.Sigmoid())


def build():
    return Both()


def run(both):
    generator, discriminator = both.g, both.d
    adversarial_loss = torch.nn.BCELoss()
    optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.999))
    optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.01, betas=(0.5, 0.999))
    rng = np.random.RandomState(3)
    d_losses, g_losses = [], []
    for _i in range(12):
        real_imgs = torch.from_numpy(rng.rand(8, 6).astype(np.float32))
        valid = torch.ones(8, 1)
        fake = torch.zeros(8, 1)
        optimizer_G.zero_grad()
        z = torch.from_numpy(rng.randn(8, 4).astype(np.float32))
        gen_imgs = generator(z)
        g_loss = adversarial_loss(discriminator(gen_imgs), valid)
        g_loss.backward()
        optimizer_G.step()
        optimizer_D.zero_grad()
        real_loss = adversarial_loss(discriminator(real_imgs), valid)
        fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()
        d_losses.append(d_loss.item())
        g_losses.append(g_loss.item())
    return {"d": d_losses, "g": g_losses}
