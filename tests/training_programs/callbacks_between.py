"""In: a model. Out: what callbacks see of the object between loss and update (fastai's Learner)."""

import numpy as np
import torch
import torch.nn as nn


class Learner:
    def __init__(self, model, data, callbacks=()):
        self.model, self.data, self.callbacks = model, data, callbacks
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.loss_func = nn.MSELoss()
        self.seen = []

    def __call__(self, name):
        for callback in self.callbacks:
            getattr(callback, name, lambda learner: None)(self)

    def one_batch(self, xb, yb):
        self.xb, self.yb = xb, yb
        self("before_batch")
        self.preds = self.model(self.xb)
        self.loss = self.loss_func(self.preds, self.yb)
        self("after_loss")
        self.opt.zero_grad()
        self.loss.backward()
        self.opt.step()
        self("after_batch")

    def fit(self, epochs):
        for _ in range(epochs):
            self.model.train()
            for xb, yb in self.data:
                self.one_batch(xb, yb)


class Seen:
    def after_loss(self, learner):
        weight = learner.model.weight.sum().item()
        learner.seen.append([learner.loss.item(), weight])


def build():
    return nn.Linear(3, 1)


def run(model):
    rng = np.random.RandomState(31)
    data = [
        (
            torch.from_numpy(rng.randn(4, 3).astype(np.float32)),
            torch.from_numpy(rng.randn(4, 1).astype(np.float32)),
        )
        for _ in range(3)
    ]
    learner = Learner(model, data, [Seen()])
    learner.fit(2)
    return {"seen": learner.seen}
