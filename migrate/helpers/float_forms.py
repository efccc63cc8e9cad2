"""In: tensors. Out: what the layers for quantization give before a model is quantized."""

import mindspore as ms
from mindspore import nn, ops


class QuantStub(nn.Cell):
    """torch.ao.quantization.QuantStub in a model that is not converted: what it is given."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def construct(self, x):
        return x


class DeQuantStub(QuantStub):
    """torch.ao.quantization.DeQuantStub in a model that is not converted: what it is given."""


class DeQuantize(nn.Cell):
    """torch.ao.nn.quantized.DeQuantize of what was never quantized: its float32 numbers."""

    def construct(self, x):
        return x.astype(ms.float32)


class FloatFunctional(nn.Cell):
    """torch.ao.nn.quantized.FloatFunctional without observers: operations on floating numbers."""

    def construct(self, x):
        raise RuntimeError("FloatFunctional has no forward: call its add, mul, cat and others")

    def add(self, x, y):
        return ops.add(x, y)

    def add_scalar(self, x, y):
        return ops.add(x, y)

    def mul(self, x, y):
        return ops.mul(x, y)

    def mul_scalar(self, x, y):
        return ops.mul(x, y)

    def cat(self, x, dim=0):
        return ops.cat(x, dim)

    def add_relu(self, x, y):
        return ops.relu(ops.add(x, y))

    def matmul(self, x, y):
        return ops.matmul(x, y)
