"""In: MindSpore. Out: MindSpore whose normal and uniform draws are a function of the size.

Parsed in graph mode as well: the numbers are a constant made while compiling.
"""

from __future__ import annotations

import sys
from typing import Any

import mindspore as ms
from mindspore import ops
from mindspore.ops.primitive import constexpr

from migrate.parity.masks import draw


@constexpr  # type: ignore[untyped-decorator]
def _drawn(kind: Any, shape: Any) -> Any:
    return ms.Tensor(draw(kind, shape))


def randn_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """ops.randn_like with the shared numbers."""
    return _drawn("normal", input.shape).astype(input.dtype if dtype is None else dtype)


def rand_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """ops.rand_like with the shared numbers."""
    return _drawn("uniform", input.shape).astype(input.dtype if dtype is None else dtype)


def standard_normal(shape: Any, seed: Any = None) -> Any:
    """ops.standard_normal with the shared numbers."""
    return _drawn("normal", shape)


def randn(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """ops.randn with the shared numbers."""
    shape = size[0] if isinstance(size[0], (tuple, list)) else size
    return _drawn("normal", shape).astype(ms.float32 if dtype is None else dtype)


def rand(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """ops.rand with the shared numbers."""
    shape = size[0] if isinstance(size[0], (tuple, list)) else size
    return _drawn("uniform", shape).astype(ms.float32 if dtype is None else dtype)


def normal(shape: Any, mean: Any, stddev: Any, seed: Any = None) -> Any:
    """ops.normal with the shared numbers."""
    return _drawn("normal", shape) * stddev + mean


class _StandardNormal:
    """Stands for the primitive ops.StandardNormal, whose instances are called with a shape."""

    def __init__(self, seed: int = 0, seed2: int = 0) -> None:
        self.seed = seed

    def __call__(self, shape: Any) -> Any:
        return standard_normal(shape)


def share_draws() -> None:
    """Replace the functions of MindSpore that draw, for this process."""
    for function in (randn_like, rand_like, standard_normal, randn, rand, normal):
        name = function.__name__
        native = getattr(ops, name)
        for module in list(sys.modules.values()):
            ours = getattr(module, "__name__", "").startswith("mindspore")
            if ours and vars(module).get(name) is native:
                setattr(module, name, function)
    ms.ops.StandardNormal = _StandardNormal
    ms.ops.operations.StandardNormal = _StandardNormal
