"""In: a model of u(x, t). Out: losses of an equation in which its second derivative stands."""

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 1))

    def forward(self, x):
        return self.layers(x)


def build():
    return Net()


class Physics:
    def __init__(self, net, x, t, u):
        self.x = torch.tensor(x, requires_grad=True).float()
        self.t = torch.tensor(t, requires_grad=True).float()
        self.u, self.net = torch.tensor(u).float(), net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def net_u(self, x, t):
        return self.net(torch.cat([x, t], dim=1))

    def net_f(self, x, t):
        u = self.net_u(x, t)
        ones = torch.ones(u.size())
        u_t = torch.autograd.grad(u, t, grad_outputs=ones, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, torch.ones_like(u_x), create_graph=True)[0]
        return u_t + u * u_x - 0.1 * u_xx

    def train(self, steps):
        self.net.train()
        history = []
        for _ in range(steps):
            u = self.net_u(self.x, self.t)
            f = self.net_f(self.x, self.t)
            data, equation = torch.mean((self.u - u) ** 2), torch.mean(f**2)
            loss = data + equation
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            history.append([loss.item(), equation.item()])
        return history


def run(model):
    rng = np.random.RandomState(5)
    x, t, u = (rng.randn(7, 1) for _ in range(3))
    return {"losses": Physics(model, x, t, u).train(12)}
