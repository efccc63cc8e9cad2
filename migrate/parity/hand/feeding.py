"""In: a Cell's call, and what torch's module received. Out: the call with torch's numbers.

A port may call its Cells in another way (one argument where torch passes query, key and value), so
the call keeps MindSpore's form, and each tensor in it is replaced by the one that stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np

from migrate.parity.exchange import Array, ArrayStore, Spec, leaves
from migrate.parity.hand.watching import Seen
from migrate.parity.ms_values import array, dtype_name, tensor_of
from migrate.parity.tolerance import relative_error


@dataclass(frozen=True)
class Feed:
    """Arguments that hold torch's numbers; ``error`` is how far the net's own were from them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: float


def feed(seen: Seen, entry: Spec, store: ArrayStore) -> Feed | None:
    """None where the tensors of the two calls do not correspond one to one."""
    wanted = _distinct(
        [store.get(leaf["key"]) for part in ("args", "kwargs")
         for _, leaf in leaves(entry[part]) if leaf["t"] == "tensor"]
    )  # fmt: skip
    mine = list(_tensors((seen.args, seen.kwargs)))
    own = _distinct([array(tensor) for tensor in mine])
    if len(wanted) != len(own) or not own:
        return None
    if any(not _alike(a, b) for a, b in zip(wanted, own, strict=True)):
        return None
    replaced = {id(tensor): _as(tensor, wanted[_index(own, array(tensor))]) for tensor in mine}
    error = max(_error(a, b.reshape(a.shape)) for a, b in zip(wanted, own, strict=True))
    return Feed(_with(seen.args, replaced), _with(seen.kwargs, replaced), error)


def _error(torch: Array, mindspore: Array) -> float:
    if torch.dtype.kind == "f":
        return relative_error(mindspore, torch)
    return 0.0 if np.array_equal(torch, mindspore) else float(np.finfo(np.float32).max)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, ms.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def _with(value: Any, replaced: dict[int, Any]) -> Any:
    if isinstance(value, ms.Tensor):
        return replaced[id(value)]
    if isinstance(value, dict):
        return {key: _with(item, replaced) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_with(item, replaced) for item in value)
    return value


def _distinct(arrays: list[Array]) -> list[Array]:
    found: list[Array] = []
    for item in arrays:
        if not any(np.array_equal(item, other) for other in found):
            found.append(item)
    return found


def _index(arrays: list[Array], wanted: Array) -> int:
    return next(i for i, item in enumerate(arrays) if np.array_equal(item, wanted))


def _alike(torch: Array, mindspore: Array) -> bool:
    whole = "iu"
    kinds = torch.dtype.kind, mindspore.dtype.kind
    same = kinds[0] == kinds[1] or all(kind in whole for kind in kinds)
    return same and _long(torch) == _long(mindspore)


def _long(numbers: Array) -> list[int]:
    """The axes that matter for which number is which: those longer than 1."""
    return [size for size in numbers.shape if size != 1]


def _as(tensor: Any, numbers: Array) -> Any:
    return tensor_of(numbers.reshape(tensor.shape), dtype_name(tensor.dtype))
