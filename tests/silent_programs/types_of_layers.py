#: script
# The exact classes of layers: of those that are called by name, and of those that are passed on.
from torch import nn


def made(layer=nn.Linear):
    return layer(3, 3)


def several(one):
    listed = nn.Linear in [type(m) for m in [one]]
    return listed, type(one) not in (nn.ReLU,), type(one) in (nn.Linear, nn.Conv2d)


named, passed, other = nn.Linear(3, 3), made(), made(nn.Identity)
for one in (named, passed, other):
    print(int(type(one) is nn.Linear), int(type(one) != nn.Linear), *map(int, several(one)))
    print(int(one.__class__ is nn.Linear), int(type(one).__name__ == "Linear"), int("Linear" in one.__class__.__name__))

kept = nn.Linear
kind = type(kept(3, 3))
print(int(kind is kept), int(isinstance(named, kept)), int(kind == nn.Linear))

table = {nn.Conv2d: 5, nn.ReLU: 7}
print(table.get(type(nn.Conv2d(1, 1, 1)), 1), table[type(nn.ReLU())])

kinds = (nn.Linear, nn.Conv2d)
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Conv2d(1, 1, 1))
print(sum(type(m) in kinds for m in net.modules()), sum(isinstance(m, kinds) for m in net.modules()))


def those(net, kind, *more):
    same = sum(isinstance(m, kind) for m in net.modules())
    return same, sum(type(m) is kind for m in net.modules()), len(more)


print(*those(net, nn.Linear), *those(net, nn.ReLU, 1), *those(nn.Sequential(made()), nn.Linear))


def either(net, kinds=(nn.Linear, nn.Conv2d)):
    return sum(isinstance(m, kinds) for m in net.modules())


print(either(net), either(net, (nn.Linear, nn.ReLU)), either(nn.Sequential(made())))
