# A trainer with callbacks of another file, one of which frees the encoder; AdamW, momentum of two groups.
#: script
import torch
import torch.nn as nn
from labkit import fill

from callbacks import Unfreeze
from model import Net


class Trainer:
    def __init__(self, model, callbacks):
        self.model = model
        self.callbacks = callbacks
        self.model.freeze_encoder()
        self.opt = torch.optim.AdamW(
            [{"params": model.encoder.parameters(), "lr": 0.01}, {"params": model.head.parameters()}], lr=0.1)
        self.loss_fn = nn.MSELoss()

    def fit(self, data, epochs):
        for epoch in range(epochs):
            for cb in self.callbacks:
                cb.on_epoch_start(self, epoch)
            for x, y in data:
                self.opt.zero_grad()
                loss = self.loss_fn(self.model(x), y)
                loss.backward()
                self.opt.step()
            print(epoch, loss.item(), self.model.encoder.weight.sum().item())


model = Net()
fill(model)
data = [(torch.arange(6.).view(2, 3) * 0.1, torch.ones(2, 1)), (torch.arange(6.).view(2, 3) * 0.2, torch.zeros(2, 1))]
Trainer(model, [Unfreeze(at=1)]).fit(data, 3)
