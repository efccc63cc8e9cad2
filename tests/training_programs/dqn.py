"""In: a model. Out: its losses: a target network copied now and then."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, n=6, m=3):
        super().__init__()
        self.fc1 = nn.Linear(n, 12)
        self.fc2 = nn.Linear(12, m)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def batches(k=6, seed=0):
    rng = np.random.RandomState(seed)
    found = []
    for _ in range(k):
        x = rng.randn(8, 6).astype(np.float32)
        found.append((torch.from_numpy(x), torch.from_numpy(np.argmax(x[:, :3], 1))))
    return found


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = Net()
        self.target = Net()


def build():
    return Both()


def run(both):
    policy_net, target_net = both.policy, both.target
    target_net.load_state_dict(policy_net.state_dict())
    target_net.eval()
    optimizer = torch.optim.RMSprop(policy_net.parameters(), lr=0.005)
    rng = np.random.RandomState(8)
    losses = []
    for step in range(12):
        states = torch.from_numpy(rng.randn(8, 6).astype(np.float32))
        actions = torch.from_numpy(rng.randint(0, 3, (8, 1)))
        rewards = torch.from_numpy(rng.rand(8).astype(np.float32))
        next_states = torch.from_numpy(rng.randn(8, 6).astype(np.float32))
        state_action_values = policy_net(states).gather(1, actions)
        next_values = target_net(next_states).max(1)[0].detach()
        expected = (next_values * 0.9) + rewards
        loss = F.smooth_l1_loss(state_action_values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        for param in policy_net.parameters():
            param.grad.data.clamp_(-1, 1)
        optimizer.step()
        losses.append(loss.item())
        if step % 4 == 0:
            target_net.load_state_dict(policy_net.state_dict())
    return {"losses": losses}
