"""In: a net. Out: losses of L-BFGS: each step calls a closure that leaves gradients with weights.

The first rounds take fixed steps, the later ones search along a line; SGD with a closure follows.
"""

import numpy as np
import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))


class Fitter:
    def __init__(self, model, x, y):
        self.model, self.x, self.y = model, x, y
        self.history = []
        self.optimizer = torch.optim.LBFGS(
            model.parameters(), lr=1.0, max_iter=3, history_size=2, line_search_fn="strong_wolfe"
        )

    def loss_of(self):
        self.optimizer.zero_grad()
        loss = torch.mean((self.model(self.x) - self.y) ** 2)
        loss.backward()
        self.history.append(loss.item())
        return loss

    def fit(self):
        final = self.optimizer.step(closure=self.loss_of)
        return final.item()


def run(model):
    rng = np.random.RandomState(0)
    x = torch.from_numpy(rng.randn(12, 3).astype(np.float32))
    y = torch.sin(x.sum(1, keepdim=True))
    criterion = nn.MSELoss()
    history = []
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=2)
    for _ in range(2):

        def closure():
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            history.append(loss.item())
            return loss

        optimizer.step(closure)
    fitter = Fitter(model, x, y)
    final = fitter.fit()
    plain = torch.optim.SGD(model.parameters(), lr=0.05)

    def again():
        plain.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        return loss

    history += [plain.step(again).item() for _ in range(2)]
    return {"losses": history, "searched": fitter.history, "final": final}
