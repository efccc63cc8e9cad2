"""In: a Parameter or Tensor. Out: the same, filled in place as torch.nn.init fills it.

Distributions are torch's; the random numbers come from mindspore.set_seed.
"""

import math

import mindspore as ms
from mindspore import ops
from mindspore.common.initializer import (
    Dirac,
    Normal,
    Orthogonal,
    Sparse,
    TruncatedNormal,
    Uniform,
    initializer,
)


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


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Reproduces torch.nn.init.uniform_: U(a, b)."""
    half = (b - a) / 2
    return drawn(tensor, Uniform(half), a + half)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Reproduces torch.nn.init.normal_: N(mean, std^2)."""
    return drawn(tensor, Normal(float(std), float(mean)))


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Reproduces torch.nn.init.trunc_normal_: N(mean, std^2) within the numbers a and b."""
    return drawn(tensor, TruncatedNormal(float(std), float(mean), float(a), float(b)))


def constant_(tensor, val):
    """Reproduces torch.nn.init.constant_."""
    return overwrite(tensor, ops.full(tensor.shape, val, dtype=tensor.dtype))


def ones_(tensor):
    """Reproduces torch.nn.init.ones_."""
    return overwrite(tensor, ops.ones_like(tensor))


def zeros_(tensor):
    """Reproduces torch.nn.init.zeros_."""
    return overwrite(tensor, ops.zeros_like(tensor))


def eye_(tensor):
    """Reproduces torch.nn.init.eye_ for a matrix."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return overwrite(tensor, ops.eye(tensor.shape[0], tensor.shape[1], tensor.dtype))


def dirac_(tensor, groups=1):
    """Reproduces torch.nn.init.dirac_ for 3 to 5 axes."""
    return drawn(tensor, Dirac(groups))


def orthogonal_(tensor, gain=1, generator=None):
    """Reproduces torch.nn.init.orthogonal_."""
    return drawn(tensor, Orthogonal(float(gain)))


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Reproduces torch.nn.init.sparse_ for a matrix."""
    return drawn(tensor, Sparse(sparsity, std))


def calculate_gain(nonlinearity, param=None):
    """Reproduces torch.nn.init.calculate_gain. Raises ValueError for unknown names."""
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity in (
        "sigmoid",
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
    ):
        return 1
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor):
    """Reproduces torch.nn.init._calculate_fan_in_and_fan_out: (fan_in, fan_out) of a weight."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor, mode):
    """Reproduces torch.nn.init._calculate_correct_fan. Raises ValueError for unknown modes."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[0 if mode.lower() == "fan_in" else 1]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Reproduces torch.nn.init.xavier_uniform_: U(-k, k), k = gain sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return drawn(tensor, Uniform(bound))


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Reproduces torch.nn.init.xavier_normal_: std = gain sqrt(2 / (fan_in + fan_out))."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return drawn(tensor, Normal(std))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Reproduces torch.nn.init.kaiming_uniform_: U(-k, k), k = gain sqrt(3 / fan)."""
    gain, fan = calculate_gain(nonlinearity, a), _calculate_correct_fan(tensor, mode)
    return drawn(tensor, Uniform(math.sqrt(3.0) * gain / math.sqrt(fan)))


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Reproduces torch.nn.init.kaiming_normal_: std = gain / sqrt(fan)."""
    gain, fan = calculate_gain(nonlinearity, a), _calculate_correct_fan(tensor, mode)
    return drawn(tensor, Normal(gain / math.sqrt(fan)))
