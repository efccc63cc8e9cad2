# What a hook returns replaces the result of its layer: a hook without a result has to keep none.
#: model[nograd] Watched() <- A(3,4)
import torch
import torch.nn as nn


class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("n", torch.zeros(1))
        self.fc.register_forward_hook(self.watch)

    def watch(self, module, inputs, output):
        if output.abs().sum() > 0:
            self.n.add_(1)

    def forward(self, x):
        return self.fc(x) * 2, self.n
