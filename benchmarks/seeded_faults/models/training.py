"""In: features, labels, parameters. Out: a right model with losses and optimizers, to be spoilt."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 16)
        self.norm = nn.LayerNorm(16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x):
        return self.fc2(torch.tanh(self.norm(self.fc1(x))))


def entropy(output, target):
    return F.cross_entropy(output, target, label_smoothing=0.1)


def chosen(output, target):
    return F.cross_entropy(output, target, ignore_index=0)


def likelihood(output, target):
    return F.nll_loss(F.log_softmax(output, dim=1), target)


def logits(output, target):
    return F.binary_cross_entropy_with_logits(output, target)


def huber(output, target):
    return F.smooth_l1_loss(output, target, beta=0.5)


def squares(output, target):
    return nn.MSELoss()(output, target)


def divergence(output, target):
    return F.kl_div(F.log_softmax(output, 1), F.softmax(target, 1), reduction="batchmean")


def sgd(params):
    return torch.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.05)


def nesterov(params):
    return torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True)


def adam(params):
    return torch.optim.Adam(params, lr=0.01, betas=(0.8, 0.95), eps=1e-4)


def adamw(params):
    return torch.optim.AdamW(params, lr=0.01, weight_decay=0.1)


def rmsprop(params):
    return torch.optim.RMSprop(params, lr=0.01, alpha=0.95)


def adagrad(params):
    return torch.optim.Adagrad(params, lr=0.05)


def groups(params):
    return torch.optim.SGD([{"params": params[:2], "lr": 0.01}, {"params": params[2:]}], lr=0.1)
