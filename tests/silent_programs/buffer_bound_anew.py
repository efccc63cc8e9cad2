# A buffer is bound anew: other names of the old one keep it in torch.
#: script
import torch
import torch.nn as nn


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(3))
        self.register_buffer("n", torch.zeros(1))

    def step(self, x):
        last = self.h
        self.h = last * 0.5 + x
        return self.h - last

    def push(self, x):
        self.history = [self.h]
        self.h = x
        return self.history[0]

    def forward(self, x):
        return self.step(x)


def swap(model, value):
    model.h = value


s = State()
print(s(torch.ones(3)).tolist(), s(torch.ones(3)).tolist())
print(s.push(torch.arange(3.)).tolist(), s.h.tolist())
before = s.h
swap(s, torch.full((3,), 7.0))
print(before.tolist(), s.h.tolist())
kept = {"h": s.h}
s.h = s.h + 1
print(kept["h"].tolist(), s.h.tolist())
for k in range(2):
    old = s.n
    s.n = old + 1
    print(old.tolist(), s.n.tolist())
setattr(s, "n", torch.zeros(1))
print(s.n.tolist())
a = s.h
s.h += 1
print(a.tolist(), s.h.tolist())
