"""The encoder with two heads, ported: its heads have other names."""

from mindspore import nn, ops


class Encoder(nn.Cell):
    def __init__(self, swapped=False):
        super().__init__()
        self.swapped = swapped
        self.body = nn.Dense(6, 5)
        self.mu = nn.Dense(5, 3)
        self.log_var = nn.Dense(5, 3)

    def construct(self, x):
        h = ops.relu(self.body(x))
        if self.swapped:
            return self.log_var(h), self.mu(h)
        return self.mu(h), self.log_var(h)
