"""In: torch.nn's arguments of simple layers. Out: Cells that take them and compute the same."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Normal, Uniform, initializer

from migrate.helpers.tensor import unflatten


class Linear(nn.Dense):
    """Reproduces torch.nn.Linear exactly."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__(in_features, out_features, has_bias=bool(bias), dtype=dtype or ms.float32)
        self.in_features, self.out_features = in_features, out_features


class Bilinear(nn.Cell):
    """Reproduces torch.nn.Bilinear for (..., in1) and (..., in2)."""

    def __init__(
        self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None
    ):
        super().__init__()
        dtype, bound = dtype or ms.float32, 1 / math.sqrt(in1_features)
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = ms.Parameter(initializer(Uniform(bound), shape, dtype))
        self.bias = None
        if bias:
            self.bias = ms.Parameter(initializer(Uniform(bound), (out_features,), dtype))

    def construct(self, input1, input2):
        pairs = input1.expand_dims(-1) * input2.expand_dims(-2)
        flat = pairs.reshape((-1, self.in1_features * self.in2_features))
        out = ops.matmul(flat, self.weight.reshape((self.out_features, -1)).swapaxes(0, 1))
        out = out.reshape((*input1.shape[:-1], self.out_features))
        return out if self.bias is None else out + self.bias


class Embedding(nn.Embedding):
    """Reproduces torch.nn.Embedding: N(0, 1), and no gradient for ``padding_idx``.

    ``max_norm`` and ``scale_grad_by_freq`` are refused with a ValueError; ``sparse`` changes
    no number and is ignored.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        if max_norm is not None or scale_grad_by_freq:
            raise ValueError("Embedding: max_norm and scale_grad_by_freq are not reproduced")
        row = padding_idx
        if padding_idx is not None and padding_idx < 0:
            row = num_embeddings + padding_idx
        super().__init__(num_embeddings, embedding_dim, False, Normal(1.0), padding_idx=row)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if _weight is not None or dtype is not None:
            value = self.embedding_table if _weight is None else _weight
            value = ms.Tensor(value.asnumpy(), dtype or value.dtype)
            self.embedding_table = ms.Parameter(value, name="embedding_table")
        self.embedding_table.requires_grad = not _freeze

    @property
    def weight(self):
        """torch's name of the table, for code that is handed some layer."""
        return self.embedding_table

    def construct(self, ids):
        out = nn.Embedding.construct(self, ids)  # super() never ends in a graph for a subclass
        if self.padding_idx is None:
            return out
        padded = (ids == self.padding_idx).expand_dims(-1)
        return ops.where(padded, ops.stop_gradient(out), out)


def pretrained_embedding(embeddings, freeze=True, padding_idx=None):
    """torch.nn.Embedding.from_pretrained: a table of these rows, not trained unless asked for."""
    rows, length = embeddings.shape
    return Embedding(rows, length, padding_idx, _weight=embeddings, _freeze=freeze)


class Identity(nn.Identity):
    """Reproduces torch.nn.Identity: takes any arguments, returns its input."""


class Flatten(nn.Flatten):
    """Reproduces torch.nn.Flatten."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__(start_dim, end_dim)

    def construct(self, x):
        return x.flatten(start_dim=self.start_dim, end_dim=self.end_dim)


class Unflatten(nn.Cell):
    """Reproduces torch.nn.Unflatten for unnamed dimensions."""

    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def construct(self, x):
        return unflatten(x, self.dim, self.unflattened_size)


class Dropout(nn.Dropout):
    """Reproduces torch.nn.Dropout; p = 1 drops everything, as in torch."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__(p=0.0 if p == 1 else float(p))
        self.p = float(p)

    def construct(self, x):
        if self.p == 1 and self.training:
            return x * 0.0
        return nn.Dropout.construct(self, x)  # super() never ends in a graph for a subclass


class ChannelDropout(nn.Cell):
    """Drops whole channels of (N, C, ...) in training, scaling the others by 1 / (1 - p)."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = float(p)

    def _dropped(self, x, channels):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0.0
        kept = (ops.rand(channels) >= self.p).astype(x.dtype)
        return x * kept.reshape(channels + (1,) * (x.ndim - len(channels))) / (1 - self.p)


class Dropout1d(ChannelDropout):
    """Reproduces torch.nn.Dropout1d for (N, C, L) and (C, L)."""

    def construct(self, x):
        return self._dropped(x, x.shape[: x.ndim - 1])


class Dropout2d(ChannelDropout):
    """Reproduces torch.nn.Dropout2d for (N, C, H, W); torch takes 3 axes as (N, C, L)."""

    def construct(self, x):
        return self._dropped(x, x.shape[:2])


class Dropout3d(ChannelDropout):
    """Reproduces torch.nn.Dropout3d for (N, C, D, H, W) and (C, D, H, W)."""

    def construct(self, x):
        return self._dropped(x, x.shape[: x.ndim - 3])


class AlphaDropout(nn.Cell):
    """Reproduces torch.nn.AlphaDropout: keeps mean and variance of SELU activations."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        self.p = float(p)

    def _mask(self, x):
        return ops.rand(x.shape)

    def construct(self, x):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0.0
        dropped = -1.7580993408473766
        scale = ((1 - self.p) * (1 + self.p * dropped**2)) ** -0.5
        kept = (self._mask(x) >= self.p).astype(x.dtype)
        return (x * kept + dropped * (1 - kept)) * scale - scale * self.p * dropped


class FeatureAlphaDropout(AlphaDropout):
    """Reproduces torch.nn.FeatureAlphaDropout: whole channels of (N, C, ...) are dropped."""

    def _mask(self, x):
        return ops.rand(x.shape[:2]).reshape(x.shape[:2] + (1,) * (x.ndim - 2))
