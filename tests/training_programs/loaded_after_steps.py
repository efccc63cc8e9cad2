"""In: a model. Out: losses of steps, of steps after its weights were set anew, and of those behind.

An optimizer that has made a step goes on with the weights that are loaded, or initialised again,
also where the class of the model, or a hook, has a say in what is loaded.
"""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Sequential):
    def load_state_dict(self, state_dict, strict=True):
        state = {k.replace("module.", ""): v for k, v in state_dict.items()}
        return super().load_state_dict(state, strict)


def check(module, state_dict, prefix, *args):
    assert prefix + "weight" in state_dict


def build():
    first = nn.Linear(3, 5)
    first.register_load_state_dict_pre_hook(check)
    return Net(first, nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 1))


def run(model):
    rng = np.random.RandomState(0)
    x, y = (torch.from_numpy(rng.randn(4, n).astype(np.float32)) for n in (3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    best = copy.deepcopy(model.state_dict())
    losses = []
    for step in range(10):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 2:
            model.load_state_dict({"module." + name: value for name, value in best.items()})
        elif step == 5:
            model.load_state_dict(model.state_dict(), strict=False)
        elif step == 6:
            flat = torch.nn.utils.parameters_to_vector(model.parameters()).detach() * 0.5
            torch.nn.utils.vector_to_parameters(flat, model.parameters())
        elif step == 7:
            nn.init.constant_(model[0].weight, 0.1)
            nn.init.zeros_(model[3].bias)
    return losses
