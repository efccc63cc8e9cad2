"""In: a gradient that may be missing, and its input. Out: what bprop has to return for it."""

import mindspore as ms
from mindspore import ops


def no_gradient(input):
    """What bprop returns where torch's backward returns None: zeros for a Tensor, else 0."""
    return ops.zeros_like(input) if isinstance(input, ms.Tensor) else 0


def gradient_or_zeros(gradient, input):
    """The gradient of an input for bprop; zeros where backward has None for it."""
    return no_gradient(input) if gradient is None else gradient
