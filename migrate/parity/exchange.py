"""Describe nested values of either framework as JSON plus .npy files, and read them back.

A description is one of ``{"t": "tensor", "key", "dtype", "shape"}``, ``{"t": "value", "v"}``,
``{"t": "dtype", "name"}``, ``{"t": "tuple" | "list", "items"}``, ``{"t": "dict", "keys",
"items"}`` and ``{"t": "opaque", "why"}`` for what has no counterpart on the other side. A layout is
a change of shape from the table, as ``unsqueeze(2)``.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Array = Any  # a numpy array; checking types must not need numpy
Spec = dict[str, Any]
PACK = "arrays.safetensors"  # all arrays of a folder, where they are kept for good


@dataclasses.dataclass
class ArrayStore:
    """Arrays of one rung as files in one folder; keys count from zero."""

    folder: Path
    count: int = 0

    def put(self, array: Array) -> str:
        """Write an array (any shape and dtype but bfloat16) and return its key."""
        key = f"a{self.count}"
        self.count += 1
        np.save(self.folder / f"{key}.npy", np.asarray(array), allow_pickle=False)
        return key

    def get(self, key: str) -> Array:
        """Read an array back; the caller owns the copy."""
        if (self.folder / PACK).exists():
            from safetensors import safe_open  # the torch side may lack it, and never needs it

            with safe_open(self.folder / PACK, "numpy") as pack:
                if key in set(pack.keys()):
                    packed: Array = pack.get_tensor(key)
                    return packed
        array: Array = np.load(self.folder / f"{key}.npy", allow_pickle=False)
        return array


def encode(value: Any, tensor: Callable[[Any], Spec | None]) -> Spec:
    """Describe a nested value; ``tensor`` describes a tensor and returns None for the rest."""
    described = tensor(value)
    if described is not None:
        return described
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"t": "value", "v": value}
    if isinstance(value, Mapping):
        keys = list(value)
        if not all(isinstance(key, (str, int)) for key in keys):
            return {"t": "opaque", "why": "a mapping with keys that are not text"}
        return {"t": "dict", "keys": keys, "items": [encode(value[k], tensor) for k in keys]}
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {"t": kind, "items": [encode(item, tensor) for item in value]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return encode({k: v for k, v in fields.items() if v is not None}, tensor)
    return {"t": "opaque", "why": f"an object of class {type(value).__name__}"}


def decode(spec: Spec, tensor: Callable[[Spec], Any], dtype: Callable[[str], Any]) -> Any:
    """Build the value that a description stands for. Raises ValueError for an opaque part."""
    kind = spec["t"]
    if kind == "tensor":
        return tensor(spec)
    if kind == "value":
        return spec["v"]
    if kind == "dtype":
        return dtype(spec["name"])
    if kind == "opaque":
        raise ValueError(f"{spec['why']} cannot be handed to the other framework")
    items = [decode(item, tensor, dtype) for item in spec["items"]]
    if kind == "dict":
        return dict(zip(spec["keys"], items, strict=False))
    return tuple(items) if kind == "tuple" else items


def leaves(spec: Spec, path: str = "") -> Iterator[tuple[str, Spec]]:
    """Yield every leaf with its place: ``""`` for a bare value, ``[0]``, ``['logits'][1]``."""
    if "items" not in spec:
        yield path, spec
        return
    names = spec.get("keys", range(len(spec["items"])))
    for name, item in zip(names, spec["items"], strict=False):
        yield from leaves(item, f"{path}[{name!r}]")


def entries(spec: Spec) -> dict[str, Spec]:
    """Return the entries of a dictionary by their names; empty for anything else."""
    if spec["t"] != "dict":
        return {}
    return {str(key): one for key, one in zip(spec["keys"], spec["items"], strict=True)}


def as_dict(items: Mapping[str, Spec]) -> Spec:
    return {"t": "dict", "keys": list(items), "items": list(items.values())}


def opaque_part(spec: Spec) -> str:
    """Return why a description cannot be handed over; empty when it can."""
    return next((leaf["why"] for _, leaf in leaves(spec) if leaf["t"] == "opaque"), "")


def digest(array: Array) -> str:
    """Return the sha256 of dtype, shape and bytes: equal exactly when the arrays are."""
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()


def read_index(folder: Path) -> Spec:
    """Return what lies in a folder beside the arrays."""
    loaded: Spec = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return loaded


def apply_layout(array: Array, layout: str) -> Array:
    """Apply a chain of shape changes, written as torch methods, to an array.

    Raises ValueError for a method that is not one of unsqueeze, squeeze, reshape, transpose,
    permute, flatten and t.
    """
    if not layout:
        return array
    expression = layout.removeprefix("self").lstrip(".")
    result = array
    for name, numbers in _steps(ast.parse(f"array.{expression}", mode="eval").body, layout):
        result = _step(result, name, numbers, layout)
    return result


def undo_layout(array: Array, layout: str) -> Array:
    """Return the array that `apply_layout` changed.

    Raises ValueError where that cannot be known.
    """
    if not layout:
        return array
    expression = layout.removeprefix("self").lstrip(".")
    result = array
    for name, numbers in reversed(
        _steps(ast.parse(f"array.{expression}", mode="eval").body, layout)
    ):
        if name in ("unsqueeze", "transpose", "t"):
            inverse = "squeeze" if name == "unsqueeze" else name
            result = _step(result, inverse, numbers, layout)
        elif name == "permute":
            result = np.transpose(result, np.argsort(numbers))
        else:
            raise ValueError(f"layout {layout!r}: {name} cannot be undone")
    return result


def _steps(node: ast.expr, layout: str) -> list[tuple[str, tuple[int, ...]]]:
    if isinstance(node, ast.Name):
        return []
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        raise ValueError(f"layout {layout!r} is not a chain of method calls")
    values = [ast.literal_eval(arg) for arg in node.args]
    numbers = tuple(n for v in values for n in (v if isinstance(v, (tuple, list)) else (v,)))
    return [*_steps(node.func.value, layout), (node.func.attr, numbers)]


def _step(array: Array, name: str, numbers: tuple[int, ...], layout: str) -> Array:
    if name == "unsqueeze":
        return np.expand_dims(array, numbers)
    if name == "squeeze":
        return np.squeeze(array, numbers or None)
    if name in ("reshape", "view"):
        return array.reshape(numbers)
    if name == "permute":
        return np.transpose(array, numbers)
    if name == "transpose":
        return np.swapaxes(array, numbers[0], numbers[1])
    if name == "t":
        return array.T
    if name == "flatten":
        return array.reshape(-1)
    raise ValueError(f"layout {layout!r}: {name} is not a known change of shape")
