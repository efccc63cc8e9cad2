# An average of the weights is taken between backward and step: it sees the weights before the update.
#: script
import copy

import torch
import torch.nn as nn
from labkit import fill


class Ema:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {k: v.clone() for k, v in model.state_dict().items()}

    def update(self):
        for k, v in self.model.state_dict().items():
            self.shadow[k] = self.decay * self.shadow[k] + (1 - self.decay) * v


net = nn.Linear(3, 1)
fill(net)
ema = Ema(net, 0.5)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    opt.zero_grad()
    loss = net(torch.ones(2, 3)).pow(2).mean()
    loss.backward()
    ema.update()
    opt.step()
    print(loss.item(), ema.shadow["weight"].sum().item())
