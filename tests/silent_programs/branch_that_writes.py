# A method without a result branches on data and writes: graph mode needs a Tensor as its result.
#: model Queue() <- A(4,3)
#: model Largest() <- A(4,3)
import torch
import torch.nn as nn


class Queue(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("queue", torch.zeros(4, 8))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def push(self, keys):
        p = int(self.ptr)
        if p + 3 > 8:
            self.queue[:, :3] = keys
        else:
            self.queue[:, p : p + 3] = keys
        self.ptr[0] = (p + 3) % 8

    def forward(self, q):
        self.push(q)
        return q * self.queue.sum()


class Largest(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.ones(1))

    @torch.no_grad()
    def update(self, x):
        m = x.abs().max()
        if m > self.seen.max():
            self.seen.fill_(float(m))

    def forward(self, x):
        self.update(x)
        return x / self.seen + x
