"""Mixed precision as scripts write it: autocast, a scaler, clipping of the unscaled gradients."""

import numpy as np
import mindspore as ms
from mindspore import nn, ops
from mindspore.experimental import optim
from torch_helpers import CrossEntropyLoss, Device, GradScaler, ScaledTrainStep, full_precision


class Residual(nn.Cell):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, pad_mode='pad', padding=1, has_bias=False)
        self.norm = nn.GroupNorm(2, channels)

    def construct(self, x):
        return x + ops.relu(self.norm(self.conv(x)))


def build():
    return nn.SequentialCell(
        nn.Conv2d(3, 8, 3, stride=2, pad_mode='pad', padding=1, has_bias=True),
        Residual(8),
        Residual(8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dense(8, 4),
    )


def images(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        labels = rng.randint(0, 4, 8).astype(np.int64)
        x = (rng.randn(8, 3, 8, 8) + labels[:, None, None, None]).astype(np.float32)
        yield ms.Tensor.from_numpy(x), ms.Tensor.from_numpy(labels)


class NetWithLoss(nn.Cell):
    def __init__(self, model, criterion):
        super().__init__(auto_prefix=False)
        self.model = model
        self.criterion = criterion

    def construct(self, inputs, labels):
        outputs = self.model(inputs)
        loss = self.criterion(outputs, labels)
        return loss


def run(model, steps=24):
    device = Device("cpu")
    use_amp = device.type == "cuda"
    criterion = CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.AdamW(model.trainable_params(), lr=5e-3, weight_decay=0.05)
    scaler = GradScaler(enabled=use_amp)
    losses = []
    train_net = ScaledTrainStep(NetWithLoss(model, criterion), optimizer, scaler, max_norm=1.0)
    train_net.set_train()
    for inputs, labels in images(steps, seed=5):
        full_precision(device.type, use_amp)
        loss = train_net(inputs, labels)
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    ms.set_seed(0)
    print(run(build())[-1])
