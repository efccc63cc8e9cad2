# A place that may be a mask or a number is set in compiled code.
import torch
from torch import nn


#: model Mapping({1: 5.0, 3: 7.0}) <- A(6)
class Mapping(nn.Module):
    def __init__(self, places):
        super().__init__()
        self.places = places
        self.w = nn.Parameter(torch.ones(6))

    def forward(self, x):
        mapping = x * self.w
        for k, v in self.places.items():
            mapping[k] = v
        return mapping * 2
