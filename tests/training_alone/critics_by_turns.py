"""In: two generators and two critics. Out: losses of one method that trains either critic.

It is called with other nets each time, by methods that another one calls between two updates.
"""

import numpy as np
import torch
from torch import nn


def build():
    makers = [nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4)) for _ in range(2)]
    critics = [nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1)) for _ in range(2)]
    return nn.ModuleList(makers + critics)


class Kept:
    def __init__(self, size):
        self.size, self.kept = size, []

    def query(self, images):
        found = []
        for image in images:
            image = torch.unsqueeze(image.data, 0)
            if len(self.kept) < self.size:
                self.kept.append(image)
                found.append(image)
            else:
                found.append(self.kept[0].clone())
        return torch.cat(found, 0)


class Cycle:
    def __init__(self, nets):
        self.net_a, self.net_b, self.critic_a, self.critic_b = nets
        self.kept_a, self.kept_b = Kept(4), Kept(4)
        self.criterion = nn.MSELoss()
        maker_weights = [*self.net_a.parameters(), *self.net_b.parameters()]
        critic_weights = [*self.critic_a.parameters(), *self.critic_b.parameters()]
        self.optimizer_g = torch.optim.SGD(maker_weights, lr=0.1)
        self.optimizer_d = torch.optim.SGD(critic_weights, lr=0.1)

    def set_input(self, a, b):
        self.real_a, self.real_b = a, b

    def freeze(self, nets, flag=False):
        for net in nets:
            for weight in net.parameters():
                weight.requires_grad = flag

    def forward(self):
        self.fake_b = self.net_a(self.real_a)
        self.fake_a = self.net_b(self.real_b)

    def backward_basic(self, critic, real, fake):
        on_real = critic(real)
        on_fake = critic(fake.detach())
        loss = self.criterion(on_real, torch.ones_like(on_real))
        loss = loss + self.criterion(on_fake, torch.zeros_like(on_fake))
        loss.backward()
        return loss

    def backward_a(self):
        fake_b = self.kept_b.query(self.fake_b)
        self.loss_a = self.backward_basic(self.critic_a, self.real_b, fake_b)

    def backward_b(self):
        fake_a = self.kept_a.query(self.fake_a)
        self.loss_b = self.backward_basic(self.critic_b, self.real_a, fake_a)

    def backward_g(self):
        on_b, on_a = self.critic_a(self.fake_b), self.critic_b(self.fake_a)
        loss = self.criterion(on_b, torch.ones_like(on_b))
        self.loss_g = loss + self.criterion(on_a, torch.ones_like(on_a))
        self.loss_g.backward()

    def optimize(self):
        self.forward()
        self.freeze([self.critic_a, self.critic_b], False)
        self.optimizer_g.zero_grad()
        self.backward_g()
        self.optimizer_g.step()
        self.freeze([self.critic_a, self.critic_b], True)
        self.optimizer_d.zero_grad()
        self.backward_a()
        self.backward_b()
        self.optimizer_d.step()


def run(nets):
    rng = np.random.RandomState(0)
    cycle = Cycle([nets[0], nets[1], nets[2], nets[3]])
    losses = []
    for _ in range(8):
        a, b = (torch.from_numpy(rng.randn(3, 4).astype(np.float32)) for _ in range(2))
        cycle.set_input(a, b)
        cycle.optimize()
        losses.append([cycle.loss_g.item(), cycle.loss_a.item(), cycle.loss_b.item()])
    return {"losses": losses}
