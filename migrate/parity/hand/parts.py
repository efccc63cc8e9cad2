"""In: torch's weights and the parts of a matching. Out: a net that holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from migrate.parity.cells import Net, held_at, put, restore, tensors
from migrate.parity.exchange import Array, ArrayStore, Spec
from migrate.parity.layout import apply_layout
from migrate.parity.ms_values import array


def load_parts(net: Net, parts: list[Spec], folder: Path) -> list[Spec]:
    """Copy torch's numbers; a part is {key, array, place, layout, torch_rows, rows, axis, adds}.

    Answers the parts that do not fit, with the reason; each part is read back and compared.
    """
    restore(net, "")
    store = ArrayStore(folder)
    failed: list[Spec] = []
    net.places.clear()
    net.layouts.clear()
    for part in sorted(parts, key=lambda part: part["adds"]):
        numbers = torch_part(store.get(part["array"]), part)
        whole = array(held_at(net, part["place"])).copy()
        target = own_part(whole, part)
        if numbers.shape != target.shape:
            why = f"shape {list(target.shape)} in MindSpore, {list(numbers.shape)} in torch"
            failed.append({"key": part["key"], "place": part["place"], "why": why})
            continue
        numbers = numbers + target if part["adds"] else numbers
        target[...] = numbers
        put(net, part["place"], whole)
        back = own_part(array(held_at(net, part["place"])), part)
        if not np.array_equal(back, numbers.astype(back.dtype), equal_nan=back.dtype.kind == "f"):
            why = "the copied values read back differently"
            failed.append({"key": part["key"], "place": part["place"], "why": why})
        net.places[part["key"]], net.layouts[part["key"]] = part["place"], part["layout"]
    net.start = {row["place"]: array(held_at(net, row["place"])).copy() for row in tensors(net)
                 if not row["trained"]}  # fmt: skip
    return failed


def torch_part(numbers: Array, part: Spec) -> Array:
    """The rows of a torch tensor that a part takes, in MindSpore's layout."""
    rows = part["torch_rows"]
    return apply_layout(numbers if rows is None else numbers[rows[0] : rows[1]], part["layout"])


def own_part(numbers: Array, part: Spec) -> Any:
    """The view of a MindSpore tensor that a part fills."""
    if part["rows"] is None:
        return numbers[...]
    where = [slice(None)] * numbers.ndim
    where[part["axis"]] = slice(*part["rows"])
    return numbers[tuple(where)]
