# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.nn.layer.normalization import _BatchNorm


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


def constant_(tensor, val):
    """Reproduces torch.nn.init.constant_."""
    return overwrite(tensor, ops.full(tensor.shape, val, dtype=tensor.dtype))


def zeros_(tensor):
    """Reproduces torch.nn.init.zeros_."""
    return overwrite(tensor, ops.zeros_like(tensor))


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


def moments(x, axes):
    """Mean and biased variance of x over the axes (kept), by two passes."""
    mean = x.mean(axes, True)
    return mean, ops.square(x - mean).mean(axes, True)


def follow_statistics(cell, mean, variance, count, factor):
    """Moves the running statistics of the cell by ``factor`` towards those of a batch."""
    mean, variance = ops.stop_gradient(mean.reshape(-1)), ops.stop_gradient(variance.reshape(-1))
    unbiased = variance * (count / (count - 1))
    ops.assign(cell.moving_mean, cell.moving_mean + factor * (mean - cell.moving_mean))
    ops.assign(
        cell.moving_variance, cell.moving_variance + factor * (unbiased - cell.moving_variance)
    )


def normalized(x, mean, variance, eps, gamma, beta):
    """(x - mean) / sqrt(variance + eps), scaled and shifted along axis 1 where gamma is given."""
    out = (x - mean) * ops.rsqrt(variance + eps)
    if gamma is None:
        return out
    shape = (1, -1) + (1,) * (x.ndim - 2)
    out = out * gamma.reshape(shape)
    return out if beta is None else out + beta.reshape(shape)


class BatchNorm(TorchNames, _BatchNorm):
    """Reproduces torch.nn.modules.batchnorm._BatchNorm for (N, C, ...) of any rank.

    Without ``affine`` gamma and beta stay one and zero. ``momentum=None`` averages over all
    batches; without ``track_running_stats`` the batch's own statistics always count.
    """

    ranks = ()  # of what a subclass takes; torch's own _BatchNorm takes nothing

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(
            num_features,
            eps,
            0.9 if momentum is None else 1 - momentum,
            affine,
            dtype=dtype or ms.float32,
        )
        self.momentum, self.affine, self.track_running_stats = momentum, affine, track_running_stats
        self.beta.requires_grad = bool(affine and bias)
        if not track_running_stats:
            clear_parameters(self, ("moving_mean", "moving_variance"))
        elif momentum is None:
            self.num_batches_tracked = ms.Parameter(ms.Tensor(0.0, ms.float32), requires_grad=False)

    def construct(self, x):
        if self.track_running_stats and (self.momentum is not None or not self.training):
            return self.kernel(x)
        axes = (0, *tuple(range(2, x.ndim)))
        mean, variance = moments(x, axes)
        if self.track_running_stats:
            ops.assign_add(self.num_batches_tracked, ms.Tensor(1.0, ms.float32))
            count = x.size // x.shape[1]
            follow_statistics(self, mean, variance, count, 1.0 / self.num_batches_tracked)
        return normalized(x, mean, variance, self.eps, self.gamma, self.beta)

    def extend_repr(self):
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"

    def _check_input_dim(self, input):
        """Raises ValueError where torch does; a subclass with a construct of its own asks it."""
        if input.ndim not in self.ranks:
            raise ValueError(f"expected input of {self.ranks} axes, got {input.ndim}D input")

    def kernel(self, x):
        """Batch normalisation by MindSpore's kernel, which takes (N, C, H, W)."""
        images = x.reshape((x.shape[0], x.shape[1], -1, 1))
        kernel = self.bn_train if self.training else self.bn_infer
        out = kernel(images, self.gamma, self.beta, self.moving_mean, self.moving_variance)[0]
        return out.reshape(x.shape)


class BatchNorm2d(BatchNorm, nn.BatchNorm2d):
    """Reproduces torch.nn.BatchNorm2d exactly."""

    ranks = (4,)
