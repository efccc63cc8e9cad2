"""In: torch.nn's normalisation arguments. Out: normalisation Cells with torch's meaning of them."""

import mindspore as ms
from mindspore import communication, nn, ops
from mindspore.communication import GlobalComm
from mindspore.nn.layer.normalization import _BatchNorm


def moments(x, axes):
    """Mean and biased variance of x over the axes (kept), by two passes."""
    mean = x.mean(axes, True)
    return mean, ops.square(x - mean).mean(axes, True)


def normalized(x, mean, variance, eps, gamma, beta):
    """(x - mean) / sqrt(variance + eps), scaled and shifted along axis 1 where gamma is given."""
    out = (x - mean) * ops.rsqrt(variance + eps)
    if gamma is None:
        return out
    shape = (1, -1) + (1,) * (x.ndim - 2)
    out = out * gamma.reshape(shape)
    return out if beta is None else out + beta.reshape(shape)


def follow_statistics(cell, mean, variance, count, factor):
    """Moves the running statistics of the cell by ``factor`` towards those of a batch."""
    mean, variance = ops.stop_gradient(mean.reshape(-1)), ops.stop_gradient(variance.reshape(-1))
    unbiased = variance * (count / (count - 1))
    ops.assign(cell.moving_mean, cell.moving_mean + factor * (mean - cell.moving_mean))
    ops.assign(
        cell.moving_variance, cell.moving_variance + factor * (unbiased - cell.moving_variance)
    )


def clear_parameters(cell, names):
    """Takes Parameters out of the cell; None alone would stay registered and break graph mode."""
    for name in names:
        delattr(cell, name)
        setattr(cell, name, None)


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


class BatchNorm1d(BatchNorm, nn.BatchNorm1d):
    """Reproduces torch.nn.BatchNorm1d exactly."""

    ranks = (2, 3)


class BatchNorm2d(BatchNorm, nn.BatchNorm2d):
    """Reproduces torch.nn.BatchNorm2d exactly."""

    ranks = (4,)


class BatchNorm3d(BatchNorm):
    """Reproduces torch.nn.BatchNorm3d exactly, its Parameters at torch's own path."""

    ranks = (5,)


@ms.constexpr
def check_alone():
    """Raises NotImplementedError where several processes compute."""
    if GlobalComm.INITED and communication.get_group_size() > 1:
        raise NotImplementedError("SyncBatchNorm: train with mindspore.nn.SyncBatchNorm on Ascend")


class SyncBatchNorm(BatchNorm):
    """Reproduces torch.nn.SyncBatchNorm in one process: a BatchNorm of any rank.

    Where several processes train it raises: torch has the statistics of all their batches.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, dtype=dtype, bias=bias
        )

    def construct(self, x):
        if self.training:
            check_alone()
        return super().construct(x)

    def _check_input_dim(self, input):
        """Raises ValueError where torch does; a subclass with a construct of its own asks it."""
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")


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


class RMSNorm(nn.Cell):
    """Reproduces torch.nn.RMSNorm; eps None is the dtype's resolution, as in torch."""

    def __init__(
        self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None
    ):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape, self.eps = tuple(shape), eps
        self.elementwise_affine = elementwise_affine
        self.weight = None
        if elementwise_affine:
            self.weight = ms.Parameter(ops.ones(self.normalized_shape, dtype or ms.float32))

    def construct(self, x):
        axes = tuple(range(-len(self.normalized_shape), 0))
        eps = self.eps
        if eps is None:
            eps = 0.0009765625 if x.dtype == ms.float16 else 1.1920928955078125e-07
        out = x * ops.rsqrt(ops.square(x).mean(axes, True) + eps)
        return out if self.weight is None else (out * self.weight).astype(x.dtype)


class GroupNorm(TorchNames, nn.GroupNorm):
    """Reproduces torch.nn.GroupNorm exactly, without bias or affine as well."""

    def __init__(
        self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__(num_groups, num_channels, float(eps), affine, dtype=dtype or ms.float32)
        self.beta.requires_grad = bool(affine and bias)


class InstanceNorm(TorchNames, nn.Cell):
    """Reproduces torch.nn.modules.instancenorm._InstanceNorm for (N, C, ...) and (C, ...)."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__()
        dtype = dtype or ms.float32
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.gamma, self.beta, self.moving_mean, self.moving_variance = None, None, None, None
        if affine:
            self.gamma = ms.Parameter(ops.ones(num_features, dtype))
            self.beta = ms.Parameter(ops.zeros(num_features, dtype)) if bias else None
        if track_running_stats:
            self.moving_mean = ms.Parameter(ops.zeros(num_features, dtype), requires_grad=False)
            self.moving_variance = ms.Parameter(ops.ones(num_features, dtype), requires_grad=False)

    def _instances(self, x):
        shape = (1, -1) + (1,) * (x.ndim - 2)
        if self.track_running_stats and not self.training:
            mean, variance = self.moving_mean.reshape(shape), self.moving_variance.reshape(shape)
            return normalized(x, mean, variance, self.eps, self.gamma, self.beta)
        mean, variance = moments(x, tuple(range(2, x.ndim)))
        if self.track_running_stats:
            count = x.size // (x.shape[0] * x.shape[1])
            follow_statistics(self, mean.mean(0), variance.mean(0), count, self.momentum)
        return normalized(x, mean, variance, self.eps, self.gamma, self.beta)


class InstanceNorm1d(InstanceNorm):
    """Reproduces torch.nn.InstanceNorm1d for (N, C, L) and (C, L)."""

    def construct(self, x):
        return self._instances(x) if x.ndim == 3 else self._instances(x.expand_dims(0)).squeeze(0)


class InstanceNorm2d(InstanceNorm):
    """Reproduces torch.nn.InstanceNorm2d for (N, C, H, W) and (C, H, W)."""

    def construct(self, x):
        return self._instances(x) if x.ndim == 4 else self._instances(x.expand_dims(0)).squeeze(0)


class InstanceNorm3d(InstanceNorm):
    """Reproduces torch.nn.InstanceNorm3d for (N, C, D, H, W) and (C, D, H, W)."""

    def construct(self, x):
        return self._instances(x) if x.ndim == 5 else self._instances(x.expand_dims(0)).squeeze(0)


class LocalResponseNorm(nn.Cell):
    """Reproduces torch.nn.LocalResponseNorm for (N, C, ...), even sizes included."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def construct(self, x):
        squares = ops.square(x).reshape((x.shape[0], 1, x.shape[1], -1))
        before, after = self.size // 2, (self.size - 1) // 2
        squares = ops.pad(squares, (0, 0, before, after))
        total = squares.narrow(2, 0, x.shape[1])
        for i in range(1, self.size):
            total = total + squares.narrow(2, i, x.shape[1])
        mean = total.reshape(x.shape) / self.size
        return x / ops.pow(mean * self.alpha + self.k, self.beta)
