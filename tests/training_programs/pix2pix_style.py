"""In: a model. Out: its losses: forward, backward_D, backward_G, optimize_parameters."""

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


class GanModel:
    def __init__(self, both):
        self.netG, self.netD = both.g, both.d
        self.criterion = nn.BCELoss()
        self.optimizer_G = torch.optim.Adam(self.netG.parameters(), lr=0.01)
        self.optimizer_D = torch.optim.Adam(self.netD.parameters(), lr=0.01)

    def set_input(self, z, real):
        self.z, self.real = z, real

    def forward(self):
        self.fake = self.netG(self.z)

    def backward_D(self):
        pred_fake = self.netD(self.fake.detach())
        self.loss_D_fake = self.criterion(pred_fake, torch.zeros_like(pred_fake))
        pred_real = self.netD(self.real)
        self.loss_D_real = self.criterion(pred_real, torch.ones_like(pred_real))
        self.loss_D = (self.loss_D_fake + self.loss_D_real) * 0.5
        self.loss_D.backward()

    def backward_G(self):
        pred_fake = self.netD(self.fake)
        self.loss_G = self.criterion(pred_fake, torch.ones_like(pred_fake))
        self.loss_G.backward()

    def optimize_parameters(self):
        self.forward()
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()


def run(both):
    rng = np.random.RandomState(3)
    gan = GanModel(both)
    history = []
    for _i in range(12):
        real = torch.from_numpy(rng.rand(8, 6).astype(np.float32))
        z = torch.from_numpy(rng.randn(8, 4).astype(np.float32))
        gan.set_input(z, real)
        gan.optimize_parameters()
        history.append([gan.loss_D.item(), gan.loss_G.item()])
    return {"losses": history}
