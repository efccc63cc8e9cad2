"""A temperature is trained by what the policy gave before its update, detached in an expression."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.out = nn.Linear(8, 3)

    def get_action(self, x):
        logits = self.out(F.relu(self.fc(x)))
        return F.log_softmax(logits, dim=1), F.softmax(logits, dim=1)


def build():
    return Actor()


def run(actor):
    rng = np.random.RandomState(0)
    target_entropy = 0.89 * float(np.log(3))
    log_alpha = torch.zeros(1, requires_grad=True)
    alpha = log_alpha.exp().item()
    a_optimizer = optim.Adam([log_alpha], lr=1e-2, eps=1e-4)
    actor_optimizer = optim.Adam(actor.parameters(), lr=1e-2, eps=1e-4)
    out = []
    for _step in range(8):
        obs = torch.from_numpy(rng.randn(6, 4).astype(np.float32))
        q = torch.from_numpy(rng.randn(6, 3).astype(np.float32))
        log_pi, action_probs = actor.get_action(obs)
        actor_loss = (action_probs * ((alpha * log_pi) - q)).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        cost = -log_alpha.exp() * (log_pi + target_entropy).detach()
        alpha_loss = (action_probs.detach() * cost).mean()
        a_optimizer.zero_grad()
        alpha_loss.backward()
        a_optimizer.step()
        alpha = log_alpha.exp().item()
        out += [actor_loss.item(), alpha_loss.item(), alpha]
    return {"out": out}
