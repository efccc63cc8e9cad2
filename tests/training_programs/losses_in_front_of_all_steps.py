"""In: a model. Out: losses of three networks, all computed in front of the first of three steps."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def net(n):
    return nn.Sequential(nn.Linear(n, 8), nn.ReLU(), nn.Linear(8, 1))


class Critics(nn.Module):
    def __init__(self):
        super().__init__()
        self.value, self.target, self.q1, self.q2 = net(3), net(3), net(4), net(4)


class Agent:
    def __init__(self, model):
        self.value_net, self.target_net = model.value, model.target
        self.q_net1, self.q_net2 = model.q1, model.q2
        self.value_optimizer = torch.optim.Adam(self.value_net.parameters(), lr=1e-2)
        self.q1_optimizer = torch.optim.Adam(self.q_net1.parameters(), lr=1e-2)
        self.q2_optimizer = torch.optim.Adam(self.q_net2.parameters(), lr=2e-2)

    def update(self, states, actions, rewards, next_states):
        both = torch.cat([states, actions], dim=1)
        next_v = self.target_net(next_states)
        curr_v = self.value_net.forward(states)
        v_loss = F.mse_loss(curr_v, torch.tanh(next_v).detach())
        curr_q1 = self.q_net1.forward(both)
        curr_q2 = self.q_net2.forward(both)
        expected_q = rewards + 0.9 * next_v
        q1_loss = F.mse_loss(curr_q1, expected_q.detach())
        q2_loss = F.mse_loss(curr_q2, expected_q.detach())

        self.value_optimizer.zero_grad()
        v_loss.backward()
        self.value_optimizer.step()

        self.q1_optimizer.zero_grad()
        q1_loss.backward()
        self.q1_optimizer.step()

        # the second critic
        self.q2_optimizer.zero_grad()
        q2_loss.backward()
        self.q2_optimizer.step()
        for kept, param in zip(
            self.target_net.parameters(), self.value_net.parameters(), strict=True
        ):
            kept.data.copy_(0.1 * param + 0.9 * kept)
        return v_loss.item(), q1_loss.item(), q2_loss.item()


def build():
    return Critics()


def run(model):
    agent, rng, losses = Agent(model), np.random.RandomState(0), []
    for _ in range(5):
        batch = [torch.from_numpy(rng.randn(6, n).astype(np.float32)) for n in (3, 1, 1, 3)]
        losses += agent.update(*batch)
    return losses
