"""Calls and inputs for rows of the table, from the cases that execute them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache

import numpy as np

from migrate.evidence.variants import draw
from migrate.mapping import table

# the last: a buffer is a Parameter without a gradient, by design, and its cases compute with it
_LEFT_OUT = ("torch2ms", "torchvision", "einops", "einx", "torch.distributed", "torch.cuda",
             "torch.accelerator", "torch.backends", "torch.utils.data", "torch.jit", "torch.amp",
             "torch.optim", "torch.sparse", "torch.get_", "torch.is_inference", "torch.compile",
             "torch.set_",
             "torch.nn.Module.register_buffer")  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One call of a row: an expression of x0, x1, ...; for a class what builds and what runs."""

    key: str
    text: str
    forward: str
    inputs: tuple[str, ...]

    def arrays(self) -> list[np.ndarray]:
        return [np.asarray(draw(text, self.key, i)) for i, text in enumerate(self.inputs)]


@cache
def rows() -> table.Table:
    return table.load(())


@cache
def calls() -> tuple[tuple[Call, ...], tuple[Call, ...]]:
    """(calls of functions and methods, constructions of layers), deterministic ones only."""
    functions, layers = [], []
    loaded = rows()
    for key in sorted(loaded.case_keys):
        case, row = loaded.case(key), loaded.row(key)
        if case is None or row is None or case.random or case.source or key.startswith(_LEFT_OUT):
            continue
        for text in case.calls:
            try:
                ast.parse(text, mode="eval")
            except SyntaxError:
                continue
            if row.kind == "class" and key.startswith("torch.nn."):
                names = ", ".join(f"x{i}" for i in range(len(case.inputs)))
                layers.append(Call(key, text, case.forward or f"m({names})", case.inputs))
            elif not case.forward:
                functions.append(Call(key, text, "", case.inputs))
    return tuple(functions), tuple(layers)
