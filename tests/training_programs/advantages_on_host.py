"""In: an actor-critic. Out: its losses: advantages made by a loop over numbers of the critic."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

gamma, lmbda, eps_clip, K_epoch = 0.98, 0.95, 0.1, 3


class PPO(nn.Module):
    def __init__(self):
        super().__init__()
        self.data = []
        self.fc1 = nn.Linear(4, 16)
        self.fc_pi = nn.Linear(16, 2)
        self.fc_v = nn.Linear(16, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=0.005)

    def pi(self, x, softmax_dim=0):
        x = F.relu(self.fc1(x))
        return F.softmax(self.fc_pi(x), dim=softmax_dim)

    def v(self, x):
        return self.fc_v(F.relu(self.fc1(x)))

    def put_data(self, transition):
        self.data.append(transition)

    def make_batch(self):
        s_lst, a_lst, r_lst, s_prime_lst, prob_a_lst, done_lst = [], [], [], [], [], []
        for s, a, r, s_prime, prob_a, done in self.data:
            s_lst.append(s)
            a_lst.append([a])
            r_lst.append([r])
            s_prime_lst.append(s_prime)
            prob_a_lst.append([prob_a])
            done_lst.append([0 if done else 1])
        s, a, r, s_prime, done_mask, prob_a = (
            torch.tensor(np.array(s_lst), dtype=torch.float),
            torch.tensor(a_lst),
            torch.tensor(r_lst, dtype=torch.float),
            torch.tensor(np.array(s_prime_lst), dtype=torch.float),
            torch.tensor(done_lst, dtype=torch.float),
            torch.tensor(prob_a_lst),
        )
        self.data = []
        return s, a, r, s_prime, done_mask, prob_a

    def train_net(self):
        s, a, r, s_prime, done_mask, prob_a = self.make_batch()
        found = []
        for _ in range(K_epoch):
            td_target = r + gamma * self.v(s_prime) * done_mask
            delta = td_target - self.v(s)
            delta = delta.detach().numpy()

            advantage_lst = []
            advantage = 0.0
            for delta_t in delta[::-1]:
                advantage = gamma * lmbda * advantage + delta_t[0]
                advantage_lst.append([advantage])
            advantage_lst.reverse()
            advantage = torch.tensor(advantage_lst, dtype=torch.float)

            pi = self.pi(s, softmax_dim=1)
            pi_a = pi.gather(1, a)
            ratio = torch.exp(torch.log(pi_a) - torch.log(prob_a))

            surr1 = ratio * advantage
            surr2 = torch.clamp(ratio, 1 - eps_clip, 1 + eps_clip) * advantage
            loss = -torch.min(surr1, surr2) + F.smooth_l1_loss(self.v(s), td_target.detach())

            self.optimizer.zero_grad()
            loss.mean().backward()
            self.optimizer.step()
            found.append(loss.mean().item())
            found.append(advantage.sum().item())
        return found


def build():
    return PPO()


def run(model):
    rng = np.random.RandomState(0)
    found = []
    for _ in range(4):
        for t in range(6):
            s = rng.randn(4).astype(np.float32)
            prob = model.pi(torch.from_numpy(s))
            a = int(rng.randint(2))
            model.put_data((s, a, float(rng.rand()), rng.randn(4), prob[a].item(), t == 5))
        found += model.train_net()
    return found
