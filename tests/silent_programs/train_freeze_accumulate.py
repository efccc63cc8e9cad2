# Gradients are accumulated and clipped, a layer is freed in between; two optimizers.
#: script
import torch
import torch.nn as nn
from labkit import fill

body, head = nn.Linear(3, 3), nn.Linear(3, 1)
fill(body)
fill(head)
opt_body = torch.optim.RMSprop(body.parameters(), lr=0.01, momentum=0.5)
opt_head = torch.optim.Adam(head.parameters(), lr=0.05)


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False


def free(module):
    for p in module.parameters():
        p.requires_grad = True


freeze(body)
for i in range(8):
    if i == 4:
        free(body)
    loss = (head(torch.tanh(body(torch.ones(2, 3) * i * 0.1))) - 1).pow(2).mean()
    loss.backward()
    if i % 2:
        nn.utils.clip_grad_norm_(list(body.parameters()) + list(head.parameters()), 0.5)
        opt_body.step()
        opt_head.step()
        opt_body.zero_grad()
        opt_head.zero_grad()
    print(i, loss.item(), body.weight.sum().item(), head.weight.sum().item())
