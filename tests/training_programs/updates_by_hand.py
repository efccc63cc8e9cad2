"""In: a model. Out: its losses: weights are changed by hand, then moved towards those (Reptile)."""

from copy import deepcopy

import numpy as np
import torch
from torch import nn


def build():
    return nn.Sequential(
        nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
    )


def run(model):
    rng = np.random.RandomState(19)
    innerstepsize, outerstepsize0 = 0.02, 0.1
    x_all = np.linspace(-5, 5, 20)[:, None]
    ntrain = 5

    def gen_task():
        phase = rng.uniform(low=0, high=2 * np.pi)
        ampl = rng.uniform(0.1, 5)
        return lambda x: np.sin(x + phase) * ampl

    def totorch(x):
        return torch.tensor(x, dtype=torch.float32)

    def train_on_batch(x, y):
        x = totorch(x)
        y = totorch(y)
        model.zero_grad()
        ypred = model(x)
        loss = (ypred - y).pow(2).mean()
        loss.backward()
        for param in model.parameters():
            param.data -= innerstepsize * param.grad.data
        return loss.item()

    losses = []
    niter = 4
    for iteration in range(niter):
        weights_before = deepcopy(model.state_dict())
        f = gen_task()
        y_all = f(x_all)
        inds = rng.permutation(len(x_all))
        for start in range(0, len(x_all), ntrain):
            mbinds = inds[start : start + ntrain]
            losses.append(train_on_batch(x_all[mbinds], y_all[mbinds]))
        weights_after = model.state_dict()
        outerstepsize = outerstepsize0 * (1 - iteration / niter)
        model.load_state_dict(
            {
                name: weights_before[name]
                + (weights_after[name] - weights_before[name]) * outerstepsize
                for name in weights_before
            }
        )
    return {"losses": losses}
