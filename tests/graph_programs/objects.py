"""In: nothing. Out: models for graph mode, one for each construct: objects of plain classes."""

# ruff: noqa
# It is the point that they are written so.

import torch
from torch import nn


class Images:
    def __init__(self, tensors, sizes):
        self.tensors = tensors
        self.sizes = sizes

    def doubled(self):
        return self.tensors * 2


class Scale:
    def __init__(self, by):
        self.by = by


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class OfTensor(Two):
    def forward(self, x):
        images = Images(self.a(x), [2])
        return self.b(images.tensors) * images.sizes[0]


class OfTensors(Two):
    def forward(self, x):
        images = Images([self.a(x), x], [2])
        return self.b(images.tensors[0])


class AsksObject(Two):
    def forward(self, x):
        return self.b(Images(self.a(x), None).doubled())


class LayerInside(Two):
    def forward(self, x):
        return nn.Sequential(self.a, self.b)(x)


class Refuses(Two):
    def forward(self, x):
        if x.ndim > 3:
            raise ValueError(x)
        return self.b(self.a(x))
