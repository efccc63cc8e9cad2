# Names of a module are read by its importers; a write is not dead because the file does not read.
#: script
import torch
from labkit import fill
import sys

x = torch.tensor([0.5, -0.25, 0.75])
y = x.acos_()
a = torch.ones(3)
b = a
c = b.mul_(2)
w = torch.zeros(2, 2)
v = w.view(-1)
v.add_(1)
base = torch.arange(4.0)
part = base[:2]
z = base.neg_()
me = sys.modules[__name__].__dict__
for name in ("x", "y", "a", "b", "c", "z", "base"):
    print(name, me[name].tolist())
