"""In: the rows as written. Out: the rows for the target mint, where they have a template for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

NOTE = "mindspore.mint: checked by signature, not executed here"
_NAMES = ("weights", "layout", "attrs")
_Values = Mapping[str, Any]


def for_mint(raw: Mapping[str, _Values]) -> dict[str, _Values]:
    """The same keys; ``to`` is the template of mint where a row has one.

    The weights and attributes of mint's classes have torch's names. A class that portable rows
    rename is therefore mint's in all of its rows, passed on as a value too, or flagged: a model
    with both would have weights of either name.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for key in raw:
        groups[key.partition(":")[0]].append(key)
    found: dict[str, _Values] = dict(raw)
    for keys in groups.values():
        classes = [str(raw[k]["mint"]).partition("(")[0] for k in keys if raw[k].get("mint")]
        if not classes:
            continue
        renamed = any(part in raw[key] for key in keys for part in _NAMES)
        for key in keys:
            found[key] = _row(raw[key], classes[0] if renamed else "")
    return found


def _row(values: _Values, mint_class: str) -> _Values:
    """``mint_class``: the class that stands for all rows of the name, "" where rows may differ."""
    template = values.get("mint")
    if not template and not mint_class:
        return values
    left_out = (*_NAMES, "ref", "to", "rule") if mint_class else ()
    kept = {part: value for part, value in values.items() if part not in left_out}
    if not template:
        return {
            **kept,
            "flag": "API104",
            "reason": f"{mint_class} does not take these arguments",
            "next": "convert with --target portable",
        }
    note = f"{values['note']} {NOTE}" if values.get("note") else NOTE
    changed = {"to": template, "note": note}
    return {**kept, **changed, **({"ref": mint_class} if mint_class else {})}
