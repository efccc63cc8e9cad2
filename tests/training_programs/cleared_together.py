"""In: two nets. Out: losses of a solver whose own method clears the gradients of both.

The critic's penalty is on points that are moved to a device under a condition; the averages of
the weights are kept as a class of their own makes them.
"""

import copy

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
        self.d = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))


class EMA:
    def __init__(self, beta):
        self.beta = beta

    def update_average(self, old, new):
        if old is None:
            return new
        return old * self.beta + (1 - self.beta) * new

    def update(self, ma_model, model):
        for current, ma in zip(model.parameters(), ma_model.parameters(), strict=True):
            old_weight, up_weight = ma.data, current.data
            ma.data = self.update_average(old_weight, up_weight)


def build():
    return Both()


class Solver:
    def __init__(self, both, use_cuda=False):
        self.G, self.D, self.use_cuda = both.g, both.d, use_cuda
        self.g_optimizer = torch.optim.Adam(self.G.parameters(), 0.01, [0.5, 0.9])
        self.d_optimizer = torch.optim.Adam(self.D.parameters(), 0.01, [0.5, 0.9])
        self.average, self.ema, self.loss = copy.deepcopy(self.G), EMA(0.8), None

    def reset_grad(self):
        """Clear the gradients of both."""
        self.g_optimizer.zero_grad()
        self.d_optimizer.zero_grad()

    def gradient_penalty(self, real, fake):
        mixed = 0.5 * real.data + 0.5 * fake.data
        mixed = Variable(mixed, requires_grad=True)
        if self.use_cuda:
            mixed = mixed.cuda()
        out = self.D(mixed)
        grads = torch.autograd.grad(
            outputs=out,
            inputs=mixed,
            grad_outputs=torch.ones(out.size()).cuda() if self.use_cuda else torch.ones(out.size()),
            create_graph=True,
            retain_graph=True,
        )[0]
        return ((torch.sqrt(torch.sum(grads**2, dim=1) + 1e-12) - 1) ** 2).mean()

    def train(self, batches):
        history = []
        for i, (real, z) in enumerate(batches):
            d_loss = self.D(self.G(z).detach()).mean() - self.D(real).mean()
            fake = self.G(z)
            d_loss = d_loss + self.gradient_penalty(real, fake)
            self.reset_grad()
            d_loss.backward()
            self.d_optimizer.step()
            if i % 2 == 0:
                self.loss = -self.D(self.G(z)).mean()
                self.reset_grad()
                self.loss.backward()
                self.g_optimizer.step()
                self.ema.update(self.average, self.G)
            history.append([d_loss.item(), self.loss.item()])
        return history


def run(model):
    rng = np.random.RandomState(3)
    batches = [
        [torch.from_numpy(rng.randn(5, n).astype(np.float32)) for n in (6, 4)] for _ in range(12)
    ]
    solver = Solver(model)
    losses = solver.train(batches)
    with torch.no_grad():
        average = solver.average(batches[0][1]).sum().item()
    return {"losses": losses, "average": average}
