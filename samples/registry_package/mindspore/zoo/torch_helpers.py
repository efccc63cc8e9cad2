# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Normal, initializer


class ReLU(nn.ReLU):
    """Reproduces torch.nn.ReLU; ``inplace`` has no effect."""

    def __init__(self, inplace=False):
        super().__init__()


class GELU(nn.GELU):
    """Reproduces torch.nn.GELU: erf by default, tanh on request."""

    def __init__(self, approximate="none"):
        super().__init__(approximate == "tanh")


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """torch.nn.functional.leaky_relu; at zero, too, the gradient is ``negative_slope``."""
    return ops.where(input > 0, input, negative_slope * input)


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


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Reproduces torch.nn.init.kaiming_normal_: std = gain / sqrt(fan)."""
    gain, fan = calculate_gain(nonlinearity, a), _calculate_correct_fan(tensor, mode)
    return drawn(tensor, Normal(gain / math.sqrt(fan)))


def is_buffer(cell, name):
    """Whether a Parameter of a Cell stands for one of torch's buffers."""
    statistics = ("moving_mean", "moving_variance", "num_batches_tracked")
    return name in statistics or name in cell.__dict__.get("registered_buffers", ())


def torch_name(cell, name):
    """torch's name for a parameter or buffer of a normalisation or embedding Cell."""
    names = {"moving_mean": "running_mean", "moving_variance": "running_var"}
    if isinstance(cell, nn.Embedding):
        names["embedding_table"] = "weight"
    is_norm = isinstance(cell, (nn.LayerNorm, nn.GroupNorm)) or "moving_mean" in cell._params
    if is_norm or type(cell).__name__.startswith(("BatchNorm", "InstanceNorm")):
        names["gamma"], names["beta"] = "weight", "bias"
    return names.get(name, name)


def own_tensors(cell, wanted, prefix="", recurse=True):
    """(torch's name, Parameter or Tensor, already seen) of a Cell and, if asked, of those in it.

    ``wanted``: True for buffers, False for parameters.
    """
    found, seen = [], set()
    cells = cell.cells_and_names(name_prefix=prefix) if recurse else [(prefix, cell)]
    for path, one in cells:
        tensors = [(n, p) for n, p in one._params.items() if is_buffer(one, n) == wanted]
        if wanted:
            tensors += one._buffers.items()
        for name, tensor in tensors:
            if tensor is not None:
                full = ".".join([path] * bool(path) + [torch_name(one, name)])
                found.append((full, tensor, id(tensor) in seen))
                seen.add(id(tensor))
    return found


def named_parameters(cell, prefix="", recurse=True, remove_duplicate=True):
    """torch.nn.Module.named_parameters: torch's names (weight, not gamma), without buffers."""
    for name, parameter, again in own_tensors(cell, False, prefix, recurse):
        if not (again and remove_duplicate):
            yield name, parameter


def parameters(cell, recurse=True):
    """torch.nn.Module.parameters: the Parameters of a Cell without moving averages and buffers."""
    for _, parameter in named_parameters(cell, recurse=recurse):
        yield parameter


class TorchNames:
    """torch's names of gamma, beta and the statistics, for code that is handed some layer."""

    @property
    def weight(self):
        return self.gamma

    @property
    def bias(self):
        return self.beta

    @property
    def running_mean(self):
        return self.moving_mean

    @property
    def running_var(self):
        return self.moving_variance


def clear_parameters(cell, names):
    """Takes Parameters out of the cell; None alone would stay registered and break graph mode."""
    for name in names:
        delattr(cell, name)
        setattr(cell, name, None)


class LayerNorm(TorchNames, nn.LayerNorm):
    """Reproduces torch.nn.LayerNorm exactly, for any normalized shape, with or without affine."""

    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
    ):
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        super().__init__(tuple(shape), epsilon=float(eps), dtype=dtype or ms.float32)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.ones = ops.ones(self.normalized_shape, dtype or ms.float32)
        self.zeros = ops.zeros(self.normalized_shape, dtype or ms.float32)
        if not elementwise_affine:
            clear_parameters(self, ("gamma",))
        if not elementwise_affine or not bias:
            clear_parameters(self, ("beta",))

    def construct(self, x):
        gamma = self.ones if self.gamma is None else self.gamma
        beta = self.zeros if self.beta is None else self.beta
        first = x.ndim - len(self.normalized_shape)
        flat = x.reshape((*x.shape[:first], -1))
        out, _, _ = self.layer_norm(
            flat, gamma.reshape(-1).astype(x.dtype), beta.reshape(-1).astype(x.dtype)
        )
        return out.reshape(x.shape)
