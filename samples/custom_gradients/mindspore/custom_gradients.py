"""Functions with gradients of their own: straight-through estimators, saved and recomputed values."""

import mindspore as ms
from mindspore import nn, ops
from torch_helpers import gradient_or_zeros, matmul, no_gradient


class Swish(nn.Cell):
    """x * sigmoid(x); only x is kept, the sigmoid is computed again."""

    def construct(self, i):
        result = i * ops.sigmoid(i)
        return result

    def bprop(self, i, out, grad_output):
        sigmoid_i = ops.sigmoid(i)
        return (grad_output * (sigmoid_i * (1 + i * (1 - sigmoid_i))),)


class Exp(nn.Cell):
    """The output is what the gradient needs."""

    def construct(self, x):
        result = x.exp()
        return result

    def bprop(self, x, out, g):
        y = out
        return (g * y,)


class Round(nn.Cell):
    """Rounds to levels; the gradient passes where the input was inside of them."""

    def construct(self, x, levels):
        half = levels / 2
        return ops.clamp(ops.round(x * levels) / levels, -half, half)

    def bprop(self, x, levels, out, grad_output):
        # the straight-through estimator
        half = levels / 2
        inside = (x.abs() <= half).astype(grad_output.dtype)
        return (grad_output * inside / levels, no_gradient(levels))


class LinearFunction(nn.Cell):
    # bias is an optional argument
    def construct(self, input, weight, bias=None):
        output = matmul(input, weight.t())
        if bias is not None:
            output = output + bias.unsqueeze(0).expand_as(output)
        return output

    def bprop(self, input, weight, bias, out, grad_output):
        """Three gradients; torch asks for those it needs."""
        grad_input = grad_weight = grad_bias = None
        if True:
            grad_input = matmul(grad_output, weight)
        if True:
            grad_weight = matmul(grad_output.t(), input)
        if bias is not None:
            grad_bias = grad_output.sum(0)
        return (gradient_or_zeros(grad_input, input), gradient_or_zeros(grad_weight, weight), gradient_or_zeros(grad_bias, bias))


class Gate(nn.Cell):
    """Two outputs, and a mask that neither is input nor output."""

    def construct(self, x, w):
        s = ops.sigmoid(x)
        mask = (s > 0.5).float()
        return s * w, s + w

    def bprop(self, x, w, out, gradients):
        ga, gb = gradients
        s = ops.sigmoid(x)
        mask = (s > 0.5).float()
        saved = (w, s * w, mask)
        x, p, m = saved
        return (ga * x + p * m, gb * x)


exp = Exp()


class Net(nn.Cell):
    def __init__(self, width=8, features=5):
        super().__init__()
        self.weight = ms.Parameter(ops.randn(width, features) * 0.3)
        self.bias = ms.Parameter(ops.randn(width) * 0.3)
        self.head = ms.Parameter(ops.randn(3, width) * 0.3)

    def construct(self, x):
        x = LinearFunction()(x, self.weight, self.bias)
        x = Swish()(x) + exp(-x.abs())
        x = LinearFunction()(x, self.head, None)
        a, b = Gate()(x, x + 1)
        return a.sum(1) + b.flatten(start_dim=1).mean(1)


class Quantized(nn.Cell):
    def __init__(self, levels=8):
        super().__init__()
        self.levels = levels
        self.scale = ms.Parameter(ms.tensor([0.7]))

    def construct(self, x):
        return Round()(x * self.scale, self.levels) * self.scale
