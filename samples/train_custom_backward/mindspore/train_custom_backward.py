"""Quantized weights with gradients of their own: what rounds forward is passed straight backward."""

import numpy as np
import mindspore as ms
from mindspore import nn, ops
from mindspore.experimental import optim
from torch_helpers import Linear, Tanh, no_gradient


class Quantize(nn.Cell):
    """Rounds to 1/levels; the gradient passes where the input lies in [-1, 1]."""

    def construct(self, x, levels):
        return ops.round(x.clamp(-1, 1) * levels) / levels

    def bprop(self, x, levels, out, grad_output):
        return (grad_output * (x.abs() <= 1).astype(grad_output.dtype), no_gradient(levels))


class QuantLinear(Linear):
    def __init__(self, inputs, outputs, levels=8):
        super().__init__(inputs, outputs)
        self.levels = levels

    def construct(self, x):
        return ops.dense(x, Quantize()(self.weight, self.levels), self.bias)


def build():
    return nn.SequentialCell(QuantLinear(6, 16), Tanh(), QuantLinear(16, 1))


def samples(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        x = rng.randn(10, 6).astype(np.float32)
        yield ms.Tensor.from_numpy(x), ms.Tensor.from_numpy(np.sin(x.sum(1, keepdims=True)))


def run(model, steps=24):
    criterion = nn.SmoothL1Loss(beta=0.5, reduction='mean')
    optimizer = optim.RMSprop(model.trainable_params(), lr=0.01, momentum=0.5)
    losses = []
    train_net = nn.TrainOneStepCell(nn.WithLossCell(model, criterion), optimizer)
    train_net.set_train()
    for x, y in samples(steps, seed=7):
        loss = train_net(x, y)
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    ms.set_seed(0)
    print(run(build())[-1])
