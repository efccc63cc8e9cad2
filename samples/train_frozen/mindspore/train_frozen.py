"""Fine-tuning a head on a frozen backbone whose statistics stay as they are."""

import numpy as np
import mindspore as ms
from mindspore import nn
from mindspore.experimental import optim
from torch_helpers import CrossEntropyLoss, modes_are_set, parameters, switch, switch_below, trainable as torch_trainable


class Backbone(nn.Cell):
    def __init__(self):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 6, 3, pad_mode='pad', padding=1, has_bias=True),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 8, 3, pad_mode='pad', padding=1, has_bias=True),
            nn.BatchNorm2d(8),
            nn.ReLU(),
        )

    def construct(self, x):
        return self.features(x).mean(axis=(2, 3))


class Finetuned(nn.Cell):
    def __init__(self, backbone, classes=3):
        super().__init__()
        self.backbone = backbone
        for param in parameters(self.backbone):
            param.requires_grad = False
        self.head = nn.Dense(8, classes)

    def set_train(self, mode=True):
        switch_below(self, mode)
        # frozen: its running statistics are not to move either
        switch(self.backbone, False)
        modes_are_set(self)
        return self

    def construct(self, x):
        return self.head(self.backbone(x))


def images(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        labels = rng.randint(0, 3, 8).astype(np.int64)
        x = (rng.randn(8, 1, 8, 8) * (1 + labels[:, None, None, None])).astype(np.float32)
        yield ms.Tensor.from_numpy(x), ms.Tensor.from_numpy(labels)


def build():
    return nn.Cell.set_train(Finetuned(Backbone()))


def run(model, steps=24):
    trainable = [p for p in parameters(model) if p.requires_grad]
    print(f"{sum(p.numel() for p in trainable)} trainable weights")
    optimizer = optim.SGD(torch_trainable(trainable), lr=0.2, momentum=0.9, weight_decay=1e-2, nesterov=True)
    criterion = CrossEntropyLoss()
    switch(model)
    modes_are_set(model)
    losses = []
    train_net = nn.TrainOneStepCell(nn.WithLossCell(model, criterion), optimizer)
    for inputs, labels in images(steps, seed=6):
        loss = train_net(inputs, labels)
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    ms.set_seed(0)
    print(run(build())[-1])
