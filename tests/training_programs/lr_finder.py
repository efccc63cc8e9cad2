"""In: a model. Out: its losses: the rate grows with each batch, stops when the loss explodes."""

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


def build():
    return Net()


def find_lr(net, data, optimizer, init_value=1e-3, final_value=10.0, beta=0.9):
    num = len(data) - 1
    mult = (final_value / init_value) ** (1 / num)
    lr = init_value
    optimizer.param_groups[0]["lr"] = lr
    avg_loss, best_loss, batch_num = 0.0, 0.0, 0
    losses, rates = [], []
    for inputs, labels in data:
        batch_num += 1  # noqa: SIM113
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = F.cross_entropy(outputs, labels)
        avg_loss = beta * avg_loss + (1 - beta) * loss.item()
        smoothed_loss = avg_loss / (1 - beta**batch_num)
        if batch_num > 1 and smoothed_loss > 4 * best_loss:
            return losses, rates
        if smoothed_loss < best_loss or batch_num == 1:
            best_loss = smoothed_loss
        losses.append(smoothed_loss)
        rates.append(lr)
        loss.backward()
        optimizer.step()
        lr *= mult
        optimizer.param_groups[0]["lr"] = lr
    return losses, rates


def run(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, rates = find_lr(model, batches(14), optimizer)
    return {"losses": losses, "rates": rates}
