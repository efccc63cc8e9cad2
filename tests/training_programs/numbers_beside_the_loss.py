"""In: a model. Out: its losses, which a function gives beside counts that are Python's numbers."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Scheduled:
    def __init__(self, optimizer):
        self._optimizer, self.steps = optimizer, 0

    def zero_grad(self):
        self._optimizer.zero_grad()

    def step_and_update_lr(self):
        self.steps += 1
        for group in self._optimizer.param_groups:
            group["lr"] = 0.1 * min(self.steps**-0.5, self.steps * 0.25)
        self._optimizer.step()


def build():
    return nn.Linear(5, 3)


def performance(out, y):
    correct = out.max(1)[1].eq(y).sum().item()
    return F.cross_entropy(out, y, reduction="sum"), correct, y.ne(0).sum().item()


def run(model):
    rng = np.random.RandomState(0)
    optimizer = Scheduled(torch.optim.SGD(model.parameters(), lr=0.1))
    losses, correct, words = [], 0, 0
    for _ in range(5):
        x = torch.from_numpy(rng.randn(6, 5).astype(np.float32))
        y = torch.from_numpy(rng.randint(0, 3, 6))
        optimizer.zero_grad()
        loss, n_correct, n_words = performance(model(x), y)
        loss.backward()
        optimizer.step_and_update_lr()
        correct += n_correct
        words += n_words
        losses.append(loss.item())
    return {"losses": losses, "correct": correct, "words": words}
