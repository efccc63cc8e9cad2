"""In: an actor with two critics. Out: losses of functions that compute by Modules around them.

Freezing makes gradients stay with the weights; the targets follow in place, by halves of a step.
"""

import copy

import numpy as np
import torch
import torch.nn as nn


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2), nn.Tanh())
        self.q = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))

    def value(self, state, action):
        return self.q(torch.cat([state, action], dim=-1)).squeeze(-1)


def build():
    return ActorCritic()


def train(ac, batches, polyak=0.8):
    target = copy.deepcopy(ac)
    for p in target.parameters():
        p.requires_grad = False

    def loss_of_q(state, action, reward):
        with torch.no_grad():
            backup = reward + 0.9 * target.value(state, target.pi(state))
        return ((ac.value(state, action) - backup) ** 2).mean()

    def loss_of_pi(state):
        return -ac.value(state, ac.pi(state)).mean()

    pi_optimizer = torch.optim.Adam(ac.pi.parameters(), lr=0.01)
    q_optimizer = torch.optim.Adam(ac.q.parameters(), lr=0.01)
    history = []

    def update(state, action, reward):
        q_optimizer.zero_grad()
        q_loss = loss_of_q(state, action, reward)
        q_loss.backward()
        q_optimizer.step()
        for p in ac.q.parameters():
            p.requires_grad = False
        pi_optimizer.zero_grad()
        pi_loss = loss_of_pi(state)
        pi_loss.backward()
        pi_optimizer.step()
        for p in ac.q.parameters():
            p.requires_grad = True
        with torch.no_grad():
            for p, p_target in zip(ac.parameters(), target.parameters(), strict=True):
                p_target.data.mul_(polyak)
                p_target.data.add_((1 - polyak) * p.data)
        history.append([q_loss.item(), pi_loss.item()])

    for batch in batches:
        update(*batch)
    return history


def run(model):
    rng = np.random.RandomState(3)
    shapes = [(6, 3), (6, 2), (6,)]
    batches = [
        [torch.from_numpy(rng.randn(*s).astype(np.float32)) for s in shapes] for _ in range(6)
    ]
    return {"losses": train(model, batches)}
