# What graph mode passes over without a word: right, or stopped, in both modes.
#: script
import torch
import torch.nn as nn
from labkit import fill


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, x, labels=None):
        logits = self.l(x)
        loss = logits.mean() if labels is not None else None
        return logits, loss

    @torch.no_grad()
    def generate(self, x, n):
        for _ in range(n):
            logits, _ = self(x)
            x = x + logits.sum() * 0.1
        return x


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
        self.b = nn.Linear(3, 2)

    def forward(self, x):
        return {'b': self.b(x), 'a': self.a(x)}


m, h = LM(), Heads()
fill(m)
fill(h)
x = torch.ones(1, 3)
print([round(v, 4) for v in m.generate(x, 2)[0].tolist()])
out = m(x)
print(out[1] is None, len(out))
logits, loss = m(x, x)
print(round(loss.item(), 4))
for k, v in h(x).items():
    print(k, round(v.sum().item(), 4))
opt = torch.optim.SGD(h.parameters(), lr=0.1)
for i in range(2):
    out = h(x)
    losses = {'b': out['b'].mean()}
    losses['a'] = out['a'].pow(2).mean()
    total = sum(losses.values())
    opt.zero_grad()
    total.backward()
    opt.step()
    print(i, {k: round(v.item(), 4) for k, v in losses.items()}, round(total.item(), 4))
