# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import ops


def no_gradient(input):
    """What bprop returns where torch's backward returns None: zeros for a Tensor, else 0."""
    return ops.zeros_like(input) if isinstance(input, ms.Tensor) else 0


def gradient_or_zeros(gradient, input):
    """The gradient of an input for bprop; zeros where backward has None for it."""
    return no_gradient(input) if gradient is None else gradient


def matmul(input, other):
    """torch.matmul; a product over no elements is zero, where MindSpore leaves it undefined."""
    product = ops.matmul(input, other)
    return product if input.shape[-1] else ops.zeros_like(product)
