"""In: torch values. Out: copies, descriptions and float64 twins of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from migrate.parity.exchange import Array, ArrayStore, Spec, encode

# Inputs are drawn with seeds from 0: a cotangent of the same numbers would lie along the input,
# where what is normed has no gradient at all.
APART = 10_000


def change(value: Any, tensor: Callable[[torch.Tensor], Any]) -> Any:
    """The same nested value with every tensor replaced; objects of other kinds stay."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(change(item, tensor) for item in value))
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(change(item, tensor) for item in value)
    if type(value) in (dict, Mapping) or type(value).__name__ == "OrderedDict":
        return type(value)((key, change(item, tensor)) for key, item in value.items())
    return value


def tensors(value: Any) -> list[torch.Tensor]:
    """All tensors of a nested value in the order of its description."""
    found: list[torch.Tensor] = []

    def keep(item: Any) -> Spec | None:
        if isinstance(item, torch.Tensor):
            found.append(item)
            return {"t": "value", "v": None}
        return None

    encode(value, keep)
    return found


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """float64 (complex128) twin of a floating tensor; whole numbers and booleans as a copy."""
    if tensor.is_complex():
        return tensor.detach().to(torch.complex128)
    if tensor.is_floating_point():
        return tensor.detach().to(torch.float64)
    return tensor.detach().clone()


def array(tensor: torch.Tensor) -> Array:
    """The numbers as numpy; bfloat16 as float32."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:
        plain = plain.float()
    result: Array = plain.contiguous().numpy()
    return result.reshape(tuple(plain.shape))


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def leaf(tensor: torch.Tensor, key: str) -> Spec:
    return {"t": "tensor", "key": key, "dtype": dtype_name(tensor), "shape": list(tensor.shape)}


def describe(value: Any, store: ArrayStore) -> Spec:
    """Description of a nested value with its arrays written to the store."""

    def tensor(item: Any) -> Spec | None:
        if isinstance(item, torch.dtype):
            return {"t": "dtype", "name": str(item).removeprefix("torch.")}
        if isinstance(item, torch.device):
            return {"t": "value", "v": None}
        if not isinstance(item, torch.Tensor):
            return None
        if item.is_sparse or item.is_quantized:
            return {"t": "opaque", "why": "a sparse or quantised tensor"}
        return leaf(item, store.put(array(item)))

    return encode(value, tensor)


def head_cotangent(head: torch.Tensor, number: int) -> torch.Tensor:
    """The cotangent of a model's ``number``-th result."""
    return cotangent(head, APART + number)


def cotangent(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Fixed normal numbers of the tensor's shape, float32."""
    draw = np.random.RandomState(seed).standard_normal(tuple(tensor.shape))
    return torch.from_numpy(np.asarray(draw, np.float32)).to(tensor.dtype)
