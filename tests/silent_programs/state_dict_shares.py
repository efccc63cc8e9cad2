# What state_dict gives is the weights themselves.
#: script
import copy
import torch
import torch.nn as nn
from labkit import fill

m = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
fill(m)
sd = m.state_dict()
sd["0.weight"] += 1
print(m[0].weight.tolist())
for name, value in m.state_dict().items():
    value.mul_(2)
print(m[0].bias.tolist(), m[1].weight.tolist())
for v in sd.values():
    v -= 0.5
print(m[1].bias.tolist())
m.state_dict()["1.bias"].zero_()
print(m[1].bias.tolist())
sd["1.bias"][0] = 3.0
print(m[1].bias.tolist())
kept = copy.deepcopy(m.state_dict())
same = m.state_dict()
with torch.no_grad():
    for p in m.parameters():
        p.add_(1.0)
print(kept["1.bias"].tolist(), same["1.bias"].tolist())
clones = {k: v.clone() for k, v in m.state_dict().items()}
for k in clones:
    clones[k] += 1
print(clones["1.bias"].tolist(), m[1].bias.tolist())
for k in sd:
    sd[k] = sd[k] * 0
print(m[1].bias.tolist())


def scale(state, by):
    for k in state:
        state[k] *= by


scale(m.state_dict(), 0.5)
print(m[1].bias.tolist())
params = dict(m.named_parameters())
with torch.no_grad():
    params["1.bias"] += 1
print(m[1].bias.tolist())
other = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
other.load_state_dict(m.state_dict())
other.state_dict()["1.bias"].add_(1)
print(other[1].bias.tolist(), m[1].bias.tolist())
