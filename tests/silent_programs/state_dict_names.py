# Names of weights that a program keeps are those of its state dicts: EMA, strict=False, `in`.
#: script
import torch
import torch.nn as nn
from labkit import fill


def build():
    return nn.Sequential(nn.Embedding(5, 6), nn.Flatten(0, 1), nn.BatchNorm1d(6), nn.Linear(6, 2))


net, other = build(), build()
fill(net)
shadow = {name: p.data.clone() * 0.5 for name, p in net.named_parameters()}
keys = other.load_state_dict(shadow, strict=False)
print(sorted(k for k in keys.missing_keys if "batches" not in k), keys.unexpected_keys)
print([p.sum().item() for p in other.parameters()])
own = other.state_dict()
for name, p in net.named_parameters():
    if name in own:
        own[name].copy_(p.data)
print([p.sum().item() for p in other.parameters()])
print(len([k for k in own if "running_mean" in k]), own["2.running_var"].sum().item())
other.load_state_dict(net.state_dict())
for name, p in shadow.items():
    own[name] = p * 3
other.load_state_dict(own)
print([p.sum().item() for p in other.parameters()])
