"""Describe MindSpore values, and rebuild them from descriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np

from migrate.parity.exchange import Array, ArrayStore, Spec, decode, encode


def array(tensor: Any) -> Array:
    """The numbers as numpy; bfloat16 as float32."""
    plain = tensor.float() if tensor.dtype == ms.bfloat16 else tensor
    result: Array = np.asarray(plain.asnumpy())
    return result


def dtype_name(dtype: Any) -> str:
    return str(dtype).lower()


def dtype_of(name: str) -> Any:
    return ms.bool_ if name == "bool" else getattr(ms, name)


def tensor_of(numbers: Array, dtype: str) -> Any:
    """A Tensor of the given dtype (0-d stays 0-d)."""
    return ms.Tensor(np.ascontiguousarray(numbers).reshape(numbers.shape), dtype_of(dtype))


def rebuild(spec: Spec, store: ArrayStore) -> Any:
    """The MindSpore value of a description. Raises ValueError for an opaque part."""
    return decode(spec, lambda leaf: tensor_of(store.get(leaf["key"]), leaf["dtype"]), dtype_of)


def describe(value: Any) -> tuple[Spec, Callable[[Spec], Array]]:
    """A description of a result and the function that reads its arrays."""
    held: list[Any] = []

    def tensor(item: Any) -> Spec | None:
        if not isinstance(item, ms.Tensor):
            return None
        held.append(item)
        shape = [int(size) for size in item.shape]
        name = dtype_name(item.dtype)
        return {"t": "tensor", "key": len(held) - 1, "dtype": name, "shape": shape}

    return encode(value, tensor), lambda leaf: array(held[leaf["key"]])
