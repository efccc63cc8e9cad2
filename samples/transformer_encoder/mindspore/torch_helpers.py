# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import ops
from mindspore.common.initializer import Normal, TruncatedNormal, initializer


def overwrite(tensor, value):
    """Puts ``value`` into a Parameter or Tensor of the same shape, in place; returns it."""
    if isinstance(tensor, ms.Parameter):  # set_data would leave its memory to the optimizer
        ops.assign(tensor, value.astype(tensor.dtype))
        return tensor
    value = value.astype(tensor.dtype)
    if tensor.parent_tensor_ is not None:  # an element, row or slice: MindSpore's copy_ misses it
        tensor.parent_tensor_[tensor.index_of_parent_] = value
        return tensor
    whole = tensor.untyped_storage().size() == tensor.nbytes and tensor.is_contiguous()
    if not whole:
        raise NotImplementedError("a view is filled in place: fill the tensor that it is a view of")
    return tensor.copy_(value)


def drawn(tensor, distribution, shift=0.0):
    """Fills ``tensor`` with numbers of a MindSpore Initializer; one without elements stays."""
    if 0 in tensor.shape:
        return tensor
    values = initializer(distribution, tensor.shape, ms.float32).init_data()
    return overwrite(tensor, values + shift)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Reproduces torch.nn.init.normal_: N(mean, std^2)."""
    return drawn(tensor, Normal(float(std), float(mean)))


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Reproduces torch.nn.init.trunc_normal_: N(mean, std^2) within the numbers a and b."""
    return drawn(tensor, TruncatedNormal(float(std), float(mean), float(a), float(b)))


def zeros_(tensor):
    """Reproduces torch.nn.init.zeros_."""
    return overwrite(tensor, ops.zeros_like(tensor))


def matmul(input, other):
    """torch.matmul; a product over no elements is zero, where MindSpore leaves it undefined."""
    product = ops.matmul(input, other)
    return product if input.shape[-1] else ops.zeros_like(product)


def register_buffer(cell, name, tensor, persistent=True):
    """torch.nn.Module.register_buffer, in a form that graph mode may also assign.

    A buffer that is saved becomes a Parameter that is not trained, so it goes into checkpoints
    and ``self.name = value`` works in construct; the others stay MindSpore's own buffers.
    """
    if tensor is None:
        setattr(cell, name, None)
        return
    if name in cell.__dict__:  # None, until there is a tensor
        delattr(cell, name)
    if not persistent:
        cell.register_buffer(name, tensor, persistent=False)
        return
    old = cell.__dict__.get("registered_buffers", ())
    object.__setattr__(cell, "registered_buffers", (*old, name))
    cell.insert_param_to_cell(name, ms.Parameter(tensor, name=name, requires_grad=False))


def bitwise_not(input):
    """torch.bitwise_not: logical for bool, else by bits."""
    return ops.logical_not(input) if input.dtype == ms.bool_ else ops.invert(input)


def softmax_over(input, dim, dtype=None):
    """torch.softmax along ``dim``, without MindSpore's kernel where that has one element.

    MindSpore 2.10 in PyNative: when the first softmax that a process differentiates goes over an
    axis of one element, all later gradients of softmax for that rank and axis are wrong.
    """
    x = input if dtype is None else input.astype(dtype)
    return ops.exp(x - x) if x.ndim == 0 or x.shape[dim] == 1 else ops.softmax(x, dim)
