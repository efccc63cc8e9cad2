"""In: torch models just built. Out: their tensors as files, with what they were at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from migrate.parity.exchange import ArrayStore
from migrate.parity.torch_values import array, dtype_name

Row = dict[str, Any]


def named(model: torch.nn.Module) -> list[tuple[str, torch.Tensor, str]]:
    """Every parameter and buffer under each of its names: (name, tensor, kind)."""
    parameters = [(n, t, "parameter") for n, t in model.named_parameters(remove_duplicate=False)]
    buffers = [(n, t, "buffer") for n, t in model.named_buffers(remove_duplicate=False)]
    return [*parameters, *buffers]


def initial(model: torch.nn.Module, other: torch.nn.Module) -> dict[str, Row]:
    """How each tensor starts: ``values`` where two builds with different seeds agree, else the
    standard deviation of its draw (``spread``).
    """
    others = {name: tensor for name, tensor, _ in named(other)}
    found: dict[str, Row] = {}
    for name, tensor, _ in named(model):
        twin = others.get(name)
        if twin is not None and twin.shape == tensor.shape and torch.equal(twin, tensor):
            found[name] = {"values": tensor.detach().clone()}
        elif tensor.is_floating_point() and tensor.numel() > 1:
            found[name] = {"spread": float(tensor.detach().double().std())}
    return found


def write_weights(model: torch.nn.Module, before: dict[str, Row], folder: Path) -> list[Row]:
    """Write the arrays to a folder; one row a tensor, in order, with ``tied`` for shared ones."""
    folder.mkdir(parents=True, exist_ok=True)
    store = ArrayStore(folder)
    first: dict[int, str] = {}
    rows: list[Row] = []
    kept = model.state_dict().keys()
    for name, tensor, kind in named(model):
        tied = first.setdefault(id(tensor), name)
        start = before.get(name, {})
        rows.append({
            "key": name, "kind": kind, "shape": list(tensor.shape), "dtype": dtype_name(tensor),
            "array": store.put(array(tensor)), "tied": "" if tied == name else tied,
            "trained": bool(tensor.requires_grad), "saved": name in kept,
            "spread": start.get("spread"),
            "start": store.put(array(start["values"])) if "values" in start else "",
        })  # fmt: skip
    return rows
