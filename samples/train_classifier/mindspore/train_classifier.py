"""A small classifier: one network, one loss, one optimizer, a step for every batch."""

import argparse
import mindspore as ms
from mindspore import nn, ops
from mindspore.experimental import optim
from torch_helpers import CrossEntropyLoss, DataLoader, TensorDataset

import numpy as np


class Classifier(nn.Cell):
    def __init__(self, num_classes=3):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, pad_mode='pad', padding=1, has_bias=True)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Dense(4 * 4 * 4, num_classes)

    def construct(self, x):
        x = ops.max_pool2d(ops.relu(self.bn(self.conv(x))), 2)
        return self.fc(x.flatten(start_dim=1))


def digits(count, seed):
    """Images whose class shows as a bright row."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 3, count)
    images = rng.randn(count, 1, 8, 8).astype(np.float32) * 0.5
    for image, label in zip(images, labels):
        image[0, 2 * label + 1] += 0.3
    return TensorDataset(ms.Tensor.from_numpy(images), ms.Tensor.from_numpy(labels.astype(np.int64)))


def train(model, loader, criterion, optimizer, epoch, log_interval=4):
    model.set_train(True)
    losses = []
    train_net = nn.TrainOneStepCell(nn.WithLossCell(model, criterion), optimizer)
    for batch_idx, (data, target) in enumerate(loader):
        loss = train_net(data, target)
        losses.append(loss.item())
        if batch_idx % log_interval == 0:
            print(f"epoch {epoch} [{batch_idx}/{len(loader)}] loss {loss.item():.4f}")
    return losses


def build():
    return Classifier().set_train()


def run(model, epochs=3):
    loader = DataLoader(digits(80, seed=0), batch_size=10, shuffle=False)
    criterion = CrossEntropyLoss()
    optimizer = optim.SGD(model.trainable_params(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    losses = []
    for epoch in range(epochs):
        losses += train(model, loader, criterion, optimizer, epoch)
        scheduler.step()
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    ms.set_seed(1)
    run(build(), args.epochs)
