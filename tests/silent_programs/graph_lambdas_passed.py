# A lambda that compiled code passes to a function: beside it the compiler fails.
import torch
from torch import nn

def check(ok, message, more=None):
    if not ok:
        raise ValueError(message())

def apply(f, x):
    return f(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        check(x.ndim == 2 and x.shape[1] == 4, lambda: f"bad shape {x.shape}")
        order = 2
        check(order in (1, 2), message=lambda: f"Order should be 1 or 2. Got {order}")
        if x.shape[0] > 1:
            y = apply(lambda v: v * order, self.lin(x))
        else:
            y = -x
        return y + apply(lambda v: v + 1, x)

#: model Net() <- A(3, 4)
