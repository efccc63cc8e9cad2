"""Make the random draws of MindSpore a function of shape and probability, the same in torch.

The replacements are parsed in graph mode as well: the numbers are a constant made while compiling.
"""

from __future__ import annotations

import sys
from typing import Any

import mindspore as ms
from mindspore import nn, ops
from mindspore.ops.primitive import constexpr

from migrate.parity.masks import PATH_DROPPING, PROBABILITIES, channel_shape, draw, keep_mask
from migrate.parity.script_run import Numbers


@constexpr  # type: ignore[untyped-decorator]
def _mask(shape: Any, p: Any, unbatched: int) -> Any:
    if unbatched:
        shape = channel_shape(shape, unbatched)
    return ms.Tensor(keep_mask(shape, float(p)))


def dropout(input: Any, p: Any = 0.5, training: bool = True, seed: Any = None) -> Any:
    """Do as ops.dropout does, with the shared mask."""
    if not training or p == 0:
        return input
    return input * _mask(input.shape, p, 0).astype(input.dtype)


def dropout1d(input: Any, p: Any = 0.5, training: bool = True) -> Any:
    """Do as ops.dropout1d does, with the shared mask."""
    if not training or p == 0:
        return input
    return input * _mask(input.shape, p, 2).astype(input.dtype)


def dropout2d(input: Any, p: Any = 0.5, training: bool = True) -> Any:
    """Do as ops.dropout2d does, with the shared mask."""
    if not training or p == 0:
        return input
    return input * _mask(input.shape, p, 3).astype(input.dtype)


def dropout3d(input: Any, p: Any = 0.5, training: bool = True) -> Any:
    """Do as ops.dropout3d does, with the shared mask."""
    if not training or p == 0:
        return input
    return input * _mask(input.shape, p, 4).astype(input.dtype)


class _Dropout:
    """The replacements keep the name construct: the graph compiler looks Cells up by it."""

    def construct(self: Any, x: Any) -> Any:
        p = self.p
        if p is None:
            p = 1.0 - self.keep_prob
        return dropout(x, p, self.training)


class _Dropout1d:
    def construct(self: Any, x: Any) -> Any:
        return dropout1d(x, self.prob, self.training)


class _Dropout2d:
    def construct(self: Any, x: Any) -> Any:
        return dropout2d(x, 1.0 - self.keep_prob, self.training)


class _Dropout3d:
    def construct(self: Any, x: Any) -> Any:
        return dropout3d(x, 1.0 - self.keep_prob, self.training)


class _ChannelDropout:
    """In place of what converted code brings along (helpers/layers.py)."""

    def _dropped(self: Any, x: Any, channels: Any) -> Any:
        if not self.training or self.p == 0:
            return x
        return x * _mask(channels + (1,) * (x.ndim - len(channels)), self.p, 0).astype(x.dtype)


def share_masks() -> None:
    """Replace the dropout functions and Cells of MindSpore for this process."""
    nn.Dropout.construct = _Dropout.construct
    nn.Dropout1d.construct = _Dropout1d.construct
    nn.Dropout2d.construct = _Dropout2d.construct
    nn.Dropout3d.construct = _Dropout3d.construct
    _share((dropout, dropout1d, dropout2d, dropout3d))


def _share(functions: Any) -> None:
    for function in functions:
        native = getattr(ops, function.__name__)
        for module in list(sys.modules.values()):
            _replace(module, function.__name__, native, function)


def _replace(module: Any, name: str, native: Any, function: Any) -> None:
    ours = getattr(module, "__name__", "").startswith("mindspore")
    if ours and vars(module).get(name) is native:
        setattr(module, name, function)


def recurrent_rates(net: Any) -> dict[str, float]:
    """Return the dropout between the layers of recurrent Cells, by path, before `silence`."""
    return {
        path: float(cell.dropout_op.p) for path, cell in net.cells_and_names()
        if hasattr(cell, "w_ih_list") and isinstance(getattr(cell, "dropout_op", None), nn.Dropout)
    }  # fmt: skip


def silence(net: Any) -> None:
    """Set the dropout between recurrent layers and of dropped paths to 0 (torch's alike).

    The Cells that came along with converted code share the masks as MindSpore's do.
    """
    for _, cell in net.cells_and_names():
        for kind in type(cell).__mro__:
            if kind.__name__ == "ChannelDropout" and "_dropped" in vars(kind):
                kind._dropped = _ChannelDropout._dropped  # type: ignore[attr-defined]
        if type(cell).__name__ in PATH_DROPPING:
            for name in PROBABILITIES:
                if isinstance(cell.__dict__.get(name), float):
                    cell.__dict__[name] = 0.0
        if hasattr(cell, "w_ih_list") and isinstance(getattr(cell, "dropout_op", None), nn.Dropout):
            cell.dropout_op.p = 0.0


@constexpr  # type: ignore[untyped-decorator]
def _drawn(kind: Any, shape: Any) -> Any:
    return ms.Tensor(draw(kind, shape))


def randn_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """Do as ops.randn_like does, with the shared numbers."""
    return _drawn("normal", input.shape).astype(input.dtype if dtype is None else dtype)


def rand_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """Do as ops.rand_like does, with the shared numbers."""
    return _drawn("uniform", input.shape).astype(input.dtype if dtype is None else dtype)


def standard_normal(shape: Any, seed: Any = None) -> Any:
    """Do as ops.standard_normal does, with the shared numbers."""
    return _drawn("normal", shape)


def randn(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Do as ops.randn does, with the shared numbers."""
    shape = size[0] if isinstance(size[0], (tuple, list)) else size
    return _drawn("normal", shape).astype(ms.float32 if dtype is None else dtype)


def rand(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Do as ops.rand does, with the shared numbers."""
    shape = size[0] if isinstance(size[0], (tuple, list)) else size
    return _drawn("uniform", shape).astype(ms.float32 if dtype is None else dtype)


def normal(shape: Any, mean: Any, stddev: Any, seed: Any = None) -> Any:
    """Do as ops.normal does, with the shared numbers."""
    return _drawn("normal", shape) * stddev + mean


class _StandardNormal:
    """Stands for the primitive ops.StandardNormal, whose instances are called with a shape."""

    def __init__(self, seed: int = 0, seed2: int = 0) -> None:
        self.seed = seed

    def __call__(self, shape: Any) -> Any:
        return standard_normal(shape)


_numbers = Numbers()


@constexpr  # type: ignore[untyped-decorator]
def _order(size: Any) -> Any:
    return ms.Tensor(_numbers.order(size))


@constexpr  # type: ignore[untyped-decorator]
def _whole(low: Any, high: Any, shape: Any) -> Any:
    return ms.Tensor(_numbers.whole(low, high, shape))


def randperm(n: Any, seed: Any = 0, offset: Any = 0, dtype: Any = ms.int64) -> Any:
    """Do as ops.randperm does, with the shared numbers."""
    return _order(n).astype(dtype)


def randint(low: Any, high: Any, size: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """Do as ops.randint does, with the shared numbers."""
    return _whole(low, high, size).astype(ms.int64 if dtype is None else dtype)


def multinomial(input: Any, num_samples: Any, replacement: Any = True, seed: Any = None) -> Any:
    """Do as ops.multinomial does, with the shared numbers: the largest with Gumbel noise."""
    if replacement and num_samples > 1:
        noise = _drawn("uniform", (num_samples, *input.shape))
        keys = ops.log(input) - ops.log(-ops.log(ops.clamp(noise, 1e-20, 1 - 6e-8)))
        return ops.stop_gradient(keys.argmax(-1).moveaxis(0, -1))
    noise = ops.clamp(_drawn("uniform", input.shape), 1e-20, 1 - 6e-8)
    return ops.topk(ops.log(input) - ops.log(-ops.log(noise)), num_samples)[1]


def share_numbers(numbers: Numbers) -> None:
    """Have everything in MindSpore that draws take its numbers from ``numbers``."""
    globals().update(_numbers=numbers, draw=numbers.draw, keep_mask=numbers.mask)
    share_draws()
    _share((randperm, randint, multinomial))


def share_draws() -> None:
    """Replace the functions of MindSpore that draw, for this process."""
    _share((randn_like, rand_like, standard_normal, randn, rand, normal))
    ms.ops.StandardNormal = _StandardNormal
    ms.ops.operations.StandardNormal = _StandardNormal
