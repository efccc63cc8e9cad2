"""In: tensors. Out: methods of torch.Tensor that MindSpore's Tensor lacks or defines otherwise."""

import math

import mindspore as ms
from mindspore import nn, ops


def to(target, device=None, dtype=None):
    """torch's ``x.to(...)`` where only running tells what the first argument is.

    A dtype or a tensor converts; a device does nothing. ``target`` may also be a Cell, whose
    parameters of floating point are then converted in place.
    """
    if isinstance(device, ms.Tensor):
        dtype = device.dtype
    elif isinstance(device, ms.Type):
        dtype = device
    if dtype is None:
        return target
    return target.to(dtype) if isinstance(target, nn.Cell) else target.astype(dtype)


def unflatten(input, dim, sizes):
    """torch.unflatten: splits an axis into several; one of the sizes may be -1."""
    axis = dim + input.ndim if dim < 0 else dim
    known = 1
    for size in sizes:
        known = known * (1 if size == -1 else size)
    sizes = [input.shape[axis] // known if size == -1 else size for size in sizes]
    return input.reshape((*input.shape[:axis], *sizes, *input.shape[axis + 1 :]))


def sliding_windows(input, dimension, size, step):
    """torch.Tensor.unfold: windows of ``size`` along an axis, every ``step``, on a last axis."""
    if input.ndim == 0:
        return input.reshape((size,))
    axis = dimension + input.ndim if dimension < 0 else dimension
    count = (input.shape[axis] - size) // step + 1
    starts = [[first * step + offset for offset in range(size)] for first in range(count)]
    windows = ops.gather(input, ms.Tensor(starts, ms.int64), axis)
    return windows.movedim(axis + 1, -1)


def flip(input, *dims):
    """torch.flip: ``dims`` as numbers or as one sequence."""
    axes = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    return ops.flip(input, tuple(axes))


def assign(tensor, value):
    """Writes ``value``, broadcast and converted, into a Parameter or Tensor; returns it.

    What torch's in-place methods do to a Parameter or a buffer; no gradient is recorded for a
    Parameter. In place of a number the value itself is returned.
    """
    if not isinstance(tensor, ms.Tensor):
        return value
    value = value.astype(tensor.dtype)
    if tensor.ndim == 4 and value.ndim == 3 and value.shape == tensor.shape[:2] + tensor.shape[3:]:
        value = value.expand_dims(2)  # a Conv1d keeps one axis more
    value = value.broadcast_to(tensor.shape)
    if isinstance(tensor, ms.Parameter):
        ops.assign(tensor, ops.stop_gradient(value))
        return tensor
    return tensor.copy_(value)


def change_given(tensor, value):
    """Writes ``value`` into the Tensor that a caller passed, in PyNative; returns it.

    For the object that MindSpore's caller has, this is what torch's in-place methods do. A view of
    another tensor is refused: that one would not get the value, or its gradient.
    """
    if isinstance(tensor, ms.Tensor) and not isinstance(tensor, ms.Parameter):
        whole = tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes
        whole = whole and getattr(tensor, "parent_tensor_", None) is None  # no index made it
        made = getattr(tensor, "_grad_node", None)
        shapes = ("Reshape", "View", "ExpandDims", "Squeeze", "Flatten", "Unflatten", "Real")
        if not whole or (made is not None and made.name() in shapes):
            raise NotImplementedError(
                "torch2ms INP206 a view is passed to what changes it in place"
            )
    return assign(tensor, value)


def shaped_as(value, out):
    """What torch writes into ``out``, in its dtype; raises where torch would reshape ``out``."""
    if tuple(value.shape) != tuple(out.shape):
        raise ValueError(f"torch2ms INP106 out= of shape {out.shape} would become {value.shape}")
    return value.astype(out.dtype)


def typed_as(values, *outs):
    """Several results, each in the dtype of the tensor that torch writes it into."""
    return tuple([value.astype(out.dtype) for value, out in zip(values, outs)])


def fill_(tensor, value):
    """torch.Tensor.fill_: every element becomes ``value``, a number or a tensor of no axes."""
    if isinstance(value, ms.Tensor):
        return assign(tensor, value)
    return assign(tensor, ops.full_like(tensor, value))


def draw_normal_(tensor, mean=0.0, std=1.0):
    """torch.Tensor.normal_: draws from N(mean, std^2)."""
    return assign(tensor, ops.randn(tensor.shape, dtype=ms.float32) * std + mean)


def draw_uniform_(tensor, start=0.0, end=1.0):
    """torch.Tensor.uniform_: draws evenly from ``start`` to below ``end``."""
    return assign(tensor, ops.rand(tensor.shape, dtype=ms.float32) * (end - start) + start)


def bernoulli_(tensor, p=0.5):
    """torch.Tensor.bernoulli_: ones with probability ``p``, else zeros."""
    chance = p.astype(ms.float32) if isinstance(p, ms.Tensor) else p
    return assign(tensor, ops.rand(tensor.shape, dtype=ms.float32) < chance)


def exponential_(tensor, lambd=1.0):
    """torch.Tensor.exponential_: draws from the exponential distribution of rate ``lambd``."""
    chance = 1.0 - ops.rand(tensor.shape, dtype=ms.float32)
    return assign(tensor, -ops.log(chance.clamp(min=1e-38)) / lambd)


def random_(tensor, low, high):
    """torch.Tensor.random_: whole numbers from ``low`` to below ``high``."""
    return assign(tensor, ops.randint(low, high, tensor.shape))


def geometric_(tensor, p):
    """torch.Tensor.geometric_: the number of trials up to the first success of chance ``p``."""
    chance = 1.0 - ops.rand(tensor.shape, dtype=ms.float32)
    return assign(tensor, ops.ceil(ops.log(chance.clamp(min=1e-38)) / math.log(1 - p)))


def cauchy_(tensor, median=0.0, sigma=1.0):
    """torch.Tensor.cauchy_: draws from the Cauchy distribution."""
    angle = math.pi * (ops.rand(tensor.shape, dtype=ms.float32) - 0.5)
    return assign(tensor, median + sigma * ops.tan(angle))


def log_normal_(tensor, mean=1.0, std=2.0):
    """torch.Tensor.log_normal_: the exponential of draws from N(mean, std^2)."""
    return assign(tensor, ops.exp(ops.randn(tensor.shape, dtype=ms.float32) * std + mean))
