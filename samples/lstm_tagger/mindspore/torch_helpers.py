# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Normal, Uniform, initializer


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


def zeros_(tensor):
    """Reproduces torch.nn.init.zeros_."""
    return overwrite(tensor, ops.zeros_like(tensor))


def _calculate_fan_in_and_fan_out(tensor):
    """Reproduces torch.nn.init._calculate_fan_in_and_fan_out: (fan_in, fan_out) of a weight."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def drawn(tensor, distribution, shift=0.0):
    """Fills ``tensor`` with numbers of a MindSpore Initializer; one without elements stays."""
    if 0 in tensor.shape:
        return tensor
    values = initializer(distribution, tensor.shape, ms.float32).init_data()
    return overwrite(tensor, values + shift)


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Reproduces torch.nn.init.xavier_uniform_: U(-k, k), k = gain sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return drawn(tensor, Uniform(bound))


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


def laid_out(sequences, batch_first):
    """Swap the first two axes unless the batch comes first."""
    return sequences if batch_first else sequences.swapaxes(0, 1)


class LSTM(nn.LSTM):
    """Reproduces torch.nn.LSTM for batched and unbatched sequences: (output, (h_n, c_n)).

    ``proj_size`` is refused with a ValueError.
    """

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        if proj_size != 0:
            raise ValueError("LSTM: proj_size is not reproduced; add a Dense layer after it")
        super().__init__(
            input_size,
            hidden_size,
            num_layers=num_layers,
            has_bias=bias,
            batch_first=batch_first,
            dropout=float(dropout),
            bidirectional=bidirectional,
            dtype=dtype or ms.float32,
        )
        self.input_size, self.bias, self.proj_size = input_size, bias, proj_size

    def flatten_parameters(self):
        """Changes nothing: there is no packed copy of the weights."""

    def construct(self, x, hx=None):
        state = None if hx is None else (hx[0], hx[1])
        if isinstance(x, tuple):
            out, state = super().construct(laid_out(x[0], self.batch_first), state, x[1])
            return (laid_out(out, self.batch_first), x[1]), state
        if x.ndim == 3:
            return super().construct(x, state)
        if state is not None:
            state = (state[0].expand_dims(1), state[1].expand_dims(1))
        batch = 0 if self.batch_first else 1
        out, (hidden, cell) = super().construct(x.expand_dims(batch), state)
        return out.squeeze(batch), (hidden.squeeze(1), cell.squeeze(1))
