"""In: torch.nn's arguments of recurrent layers. Out: Cells with the same weights and states."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Uniform, initializer

from migrate.helpers.activation import tanh_of
from migrate.helpers.sequences import pad_sequence


class GateCell(nn.Cell):
    """What RNNCell, LSTMCell and GRUCell share: weights for ``gates`` gates, U(-k, k)."""

    def __init__(self, input_size, hidden_size, bias, gates, dtype):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        bound, dtype = Uniform(1 / math.sqrt(hidden_size)), dtype or ms.float32
        rows = gates * hidden_size
        self.weight_ih = ms.Parameter(initializer(bound, (rows, input_size), dtype))
        self.weight_hh = ms.Parameter(initializer(bound, (rows, hidden_size), dtype))
        self.bias_ih, self.bias_hh = None, None
        if bias:
            self.bias_ih = ms.Parameter(initializer(bound, (rows,), dtype))
            self.bias_hh = ms.Parameter(initializer(bound, (rows,), dtype))

    def _gates(self, x, h):
        """The gates of the input and those of the state, each (N, gates * hidden)."""
        given = ops.matmul(x, self.weight_ih.swapaxes(0, 1))
        kept = ops.matmul(h, self.weight_hh.swapaxes(0, 1))
        if self.bias:
            given, kept = given + self.bias_ih, kept + self.bias_hh
        return given, kept

    def _state(self, x, hx):
        """The state (N, hidden): zeros when none is given."""
        if hx is None:
            return ops.zeros((x.shape[0], self.hidden_size), x.dtype)
        return hx if hx.ndim == 2 else hx.expand_dims(0)


class RNNCell(GateCell):
    """Reproduces torch.nn.RNNCell for (N, input) and (input,)."""

    def __init__(
        self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None
    ):
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def construct(self, x, hx=None):
        rows = x if x.ndim == 2 else x.expand_dims(0)
        given, kept = self._gates(rows, self._state(rows, hx))
        out = ops.relu(given + kept) if self.nonlinearity == "relu" else tanh_of(given + kept)
        return out if x.ndim == 2 else out.squeeze(0)


class GRUCell(GateCell):
    """Reproduces torch.nn.GRUCell for (N, input) and (input,)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, dtype)

    def construct(self, x, hx=None):
        rows = x if x.ndim == 2 else x.expand_dims(0)
        state = self._state(rows, hx)
        given, kept = self._gates(rows, state)
        size = self.hidden_size
        both = ops.sigmoid(given[:, : 2 * size] + kept[:, : 2 * size])
        reset, update = both[:, :size], both[:, size:]
        new = tanh_of(given[:, 2 * size :] + reset * kept[:, 2 * size :])
        out = new + update * (state - new)
        return out if x.ndim == 2 else out.squeeze(0)


class LSTMCell(GateCell):
    """Reproduces torch.nn.LSTMCell for (N, input) and (input,); returns (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, dtype)

    def construct(self, x, hx=None):
        rows = x if x.ndim == 2 else x.expand_dims(0)
        state = self._state(rows, None if hx is None else hx[0])
        cell = self._state(rows, None if hx is None else hx[1])
        given, kept = self._gates(rows, state)
        total, size = given + kept, self.hidden_size
        admit, forget = ops.sigmoid(total[:, :size]), ops.sigmoid(total[:, size : 2 * size])
        new = tanh_of(total[:, 2 * size : 3 * size])
        cell = forget * cell + admit * new
        state = ops.sigmoid(total[:, 3 * size :]) * tanh_of(cell)
        return (state, cell) if x.ndim == 2 else (state.squeeze(0), cell.squeeze(0))


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """torch.nn.utils.rnn.pack_padded_sequence as a pair that RNN, GRU and LSTM here take.

    The pair holds the padded sequences (B, T, ...), and their lengths (B,) in int32.
    """
    if not isinstance(lengths, ms.Tensor):
        lengths = ms.Tensor(lengths)
    return laid_out(input, batch_first), lengths.astype(ms.int32)


def pack_sequence(sequences, enforce_sorted=True):
    """torch.nn.utils.rnn.pack_sequence: see pack_padded_sequence."""
    lengths = [one.shape[0] for one in sequences]
    return pack_padded_sequence(pad_sequence(sequences, True), lengths, True)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """torch.nn.utils.rnn.pad_packed_sequence: (padded sequences, int64 lengths)."""
    padded, lengths = sequence
    longest = int(lengths.max())
    size = longest if total_length is None else total_length
    padded = padded[:, :size]
    if size > padded.shape[1]:
        gap = (padded.shape[0], size - padded.shape[1], *padded.shape[2:])
        padded = ops.cat((padded, ops.zeros(gap, padded.dtype)), 1)
    inside = ops.arange(size) < lengths.expand_dims(1)
    inside = inside.reshape((*inside.shape, *[1 for _ in padded.shape[2:]]))
    padded = ops.where(inside, padded, ops.full_like(padded, padding_value))
    return laid_out(padded, batch_first), lengths.astype(ms.int64)


def laid_out(sequences, batch_first):
    """Swap the first two axes unless the batch comes first."""
    return sequences if batch_first else sequences.swapaxes(0, 1)


class RecurrentSteps(nn.Cell):
    """One layer in one direction, step by step as on MindSpore's CPU, but with a fine tanh."""

    def __init__(self, gated):
        super().__init__()
        self.gated = gated

    def _step(self, given, h, w_hh, b_hh):
        kept = ops.matmul(h, w_hh.swapaxes(0, 1))
        kept = kept if b_hh is None else kept + b_hh
        if not self.gated:
            return tanh_of(given + kept)
        size = h.shape[1]
        both = ops.sigmoid(given[:, : 2 * size] + kept[:, : 2 * size])
        new = tanh_of(given[:, 2 * size :] + both[:, :size] * kept[:, 2 * size :])
        return new + both[:, size:] * (h - new)

    def construct(self, x, h, seq_length, w_ih, w_hh, b_ih, b_hh):
        given = ops.dense(x, w_ih, b_ih)  # matmul gives gradients of rank 4 for one step of one row
        outputs = []
        for t in range(x.shape[0]):
            new = out = self._step(given[t], h, w_hh, b_hh)
            if seq_length is not None:
                goes_on = (seq_length > t).expand_dims(1)
                new, out = ops.where(goes_on, new, h), ops.where(goes_on, out, ops.zeros_like(out))
            h = new
            outputs.append(out)
        return ops.stack(outputs), h


class RNN(nn.RNN):
    """Reproduces torch.nn.RNN for batched and unbatched sequences; returns (output, h_n)."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        nonlinearity="tanh",
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        device=None,
        dtype=None,
    ):
        super().__init__(
            input_size,
            hidden_size,
            num_layers=num_layers,
            has_bias=bias,
            batch_first=batch_first,
            dropout=float(dropout),
            bidirectional=bidirectional,
            nonlinearity=nonlinearity,
            dtype=dtype or ms.float32,
        )
        self.input_size, self.nonlinearity, self.bias = input_size, nonlinearity, bias
        if nonlinearity == "tanh" and ms.get_context("device_target") == "CPU":
            self.rnn = RecurrentSteps(False)

    def flatten_parameters(self):
        """Changes nothing: there is no packed copy of the weights."""

    def construct(self, x, hx=None):
        if isinstance(x, tuple):
            out, state = super().construct(laid_out(x[0], self.batch_first), hx, x[1])
            return (laid_out(out, self.batch_first), x[1]), state
        if x.ndim == 3:
            return super().construct(x, hx)
        batch = 0 if self.batch_first else 1
        out, state = super().construct(
            x.expand_dims(batch), None if hx is None else hx.expand_dims(1)
        )
        return out.squeeze(batch), state.squeeze(1)


class GRU(nn.GRU):
    """Reproduces torch.nn.GRU for batched and unbatched sequences; returns (output, h_n)."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        device=None,
        dtype=None,
    ):
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
        self.input_size, self.bias = input_size, bias
        if ms.get_context("device_target") == "CPU":
            self.rnn = RecurrentSteps(True)

    def flatten_parameters(self):
        """Changes nothing: there is no packed copy of the weights."""

    def construct(self, x, hx=None):
        if isinstance(x, tuple):
            out, state = super().construct(laid_out(x[0], self.batch_first), hx, x[1])
            return (laid_out(out, self.batch_first), x[1]), state
        if x.ndim == 3:
            return super().construct(x, hx)
        batch = 0 if self.batch_first else 1
        out, state = super().construct(
            x.expand_dims(batch), None if hx is None else hx.expand_dims(1)
        )
        return out.squeeze(batch), state.squeeze(1)


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
