"""In: a gradient that may be missing, and its input. Out: what bprop has to return for it."""

import mindspore as ms
from mindspore import ops


def no_gradient(input):
    """What bprop returns where torch's backward returns None: zeros for a Tensor, else 0."""
    return ops.zeros_like(input) if isinstance(input, ms.Tensor) else 0


def gradient_or_zeros(gradient, input):
    """The gradient of an input for bprop; zeros where backward has None for it."""
    return no_gradient(input) if gradient is None else gradient


def without_gradient(value):
    """What torch computes under no_grad: the Tensors of a value cut off, in containers as well."""
    if isinstance(value, ms.Parameter):
        return value
    if isinstance(value, ms.Tensor):
        return ops.stop_gradient(value)
    if type(value) in (list, tuple):
        return type(value)([without_gradient(part) for part in value])
    if type(value) is dict:
        return {key: without_gradient(part) for key, part in value.items()}
    return value
