# A write into what detach() gives is one into the tensor itself.
#: model Copied() <- A(3,4)
import torch
import torch.nn as nn


class Copied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        for p, q in zip(self.a.parameters(), self.b.parameters()):
            p.detach().copy_(q)
            q.detach().mul_(2)

    def forward(self, x):
        return self.a(x) + self.b(x)
