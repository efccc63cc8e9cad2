"""In: a tree of values. Out: the entries of a .ckpt file that hold it, and back.

One state dict lies there by its own names. Of anything else the structure is stored along as
JSON, as the converted program's ``save`` and ``load`` (migrate/helpers/checkpoint.py) do it.
"""

from __future__ import annotations

import json
from typing import Any

from migrate.parity.exchange import Spec

STRUCTURE = "structure"
STORED = frozenset(
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64"
    .split()
)  # fmt: skip


def unstorable(spec: Spec) -> str:
    """Why a .ckpt file cannot hold a tensor; empty when it can."""
    if 0 in spec["shape"]:
        return "a .ckpt file holds no tensor without elements"
    if spec["dtype"] not in STORED:
        return f"a .ckpt file holds no {spec['dtype']}"
    return ""


def packed(tree: Spec) -> Spec:
    """The entries to write: a dictionary of tensors and, where needed, the structure."""
    if tree["t"] == "dict" and all(
        isinstance(key, str) and key != STRUCTURE and one["t"] == "tensor"
        for key, one in zip(tree["keys"], tree["items"], strict=True)
    ):
        return tree
    found: dict[str, Spec] = {}
    text = json.dumps(_as_json(tree, found, "obj"))
    items = [*found.values(), {"t": "value", "v": text}]
    return {"t": "dict", "keys": [*found, STRUCTURE], "items": items}


def _as_json(spec: Spec, found: dict[str, Spec], place: str) -> Any:
    if spec["t"] == "tensor":
        found[place] = spec
        return {"tensor": place}
    if spec["t"] == "dict":
        return {"dict": [
            [key, _as_json(one, found, f"{place}.{key}")]
            for key, one in zip(spec["keys"], spec["items"], strict=True)
        ]}  # fmt: skip
    if spec["t"] in ("list", "tuple"):
        return {spec["t"]: [_as_json(one, found, f"{place}.{n}")
                            for n, one in enumerate(spec["items"])]}  # fmt: skip
    if spec["t"] == "value":
        return spec["v"]
    raise ValueError(f"{place}: {spec.get('why', spec['t'])} cannot be stored")


def unpacked(entries: Spec) -> Spec:
    """The tree that `packed` or the converted program stored. Raises ValueError for other text."""
    held = dict(zip(entries["keys"], entries["items"], strict=True))
    structure = held.pop(STRUCTURE, None)
    if structure is None or structure["t"] != "value":
        return entries
    return _from_json(json.loads(structure["v"]), held)


def _from_json(value: Any, held: dict[str, Spec]) -> Spec:
    if not isinstance(value, dict):
        return {"t": "value", "v": value}
    kind, inner = next(iter(value.items()))
    if kind == "tensor":
        if inner not in held:
            raise ValueError(f"its structure names {inner}, which is not there: it is damaged")
        return held[inner]
    if kind in ("dict", "OrderedDict"):
        items = [_from_json(one, held) for _, one in inner]
        return {"t": "dict", "keys": [key for key, _ in inner], "items": items}
    if kind in ("list", "tuple"):
        return {"t": kind, "items": [_from_json(one, held) for one in inner]}
    return {"t": "opaque", "why": f"a {kind} of the converted program"}
