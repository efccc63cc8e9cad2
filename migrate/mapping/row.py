"""Read the TOML values of one row or case: the frozen Row and Case, and the row for mint.

docs/table.md defines the format; ``migrate.mapping.table`` reads the files and knows the facts.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.mapping.signatures import Signature, SignatureError, parse_signature

POLICY_DROP = frozenset(
    {
        "device",
        "inplace",
        "layout",
        "memory_format",
        "non_blocking",
        "pin_memory",
        "requires_grad",
    }
)
# Arguments that a row need not name: a call that gives another value than None is refused.
POLICY_REFUSE = frozenset({"generator", "out"})
# The codes of flags: what kind of thing has no target.
CODES = ("API", "DEF", "DTY", "INP", "GRF", "DAT", "LOP", "OPT", "DEV", "CKP", "RNG", "ENV")


class TableError(ValueError):
    """A table that cannot be read; the message names file and key, the reason and what to do."""


@dataclass(frozen=True)
class Row:
    """One torch name and what becomes of it; docs/table.md explains each field.

    ``key`` is the TOML key, ``name`` the torch name in it and ``label`` the part after the colon.
    ``signatures`` are the torch signatures that this row answers for.
    """

    key: str
    name: str
    label: str
    kind: str
    to: str = ""
    mint: str = ""
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()
    ref: str = ""
    weights: Mapping[str, str] = field(default_factory=dict)
    layout: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[str, ...] = ()
    attrs: Mapping[str, str] = field(default_factory=dict)
    forward: str = ""
    result: str = ""
    returns: tuple[str, ...] = ()
    rule: str = ""
    flag: str = ""
    reason: str = ""
    next_step: str = ""
    note: str = ""
    when: Mapping[str, str] = field(default_factory=dict)
    signatures: tuple[Signature, ...] = ()
    file: str = ""


@dataclass(frozen=True)
class Case:
    """How a row is executed: calls on inputs ``x0, x1, ...``, as docs/table.md defines them."""

    key: str
    calls: tuple[str, ...]
    inputs: tuple[str, ...]
    forward: str = ""
    random: bool = False
    gradient: bool = True
    modes: tuple[str, ...] = ("pynative", "graph")
    why: str = ""
    source: str = ""
    differs: Mapping[str, str] = field(default_factory=dict)
    file: str = ""


ROW_TEXTS = ("to", "mint", "ref", "forward", "result", "rule", "flag", "reason", "note")
ROW_MAPS = ("weights", "layout", "attrs", "when")
ROW_LISTS = ("drop", "returns", "holds")
ROW_KEYS = frozenset({*ROW_TEXTS, *ROW_MAPS, *ROW_LISTS, "only", "next", "signature"})
CASE_KEYS = frozenset(
    {"calls", "inputs", "forward", "random", "gradient", "modes", "source", "why", "differs"}
)


def make_row(
    key: str,
    values: Mapping[str, Any],
    path: Path,
    known: tuple[Signature, ...],
    kind: str,
    labels: frozenset[str],
) -> Row:
    """One row. ``known``: torch's signatures; ``labels``: those of all rows of this name."""
    name, _, label = key.partition(":")
    only = values.get("only", {})
    _expect(dict, only, path, key, "only")
    texts = {part: _expect(str, values.get(part, ""), path, key, part) for part in ROW_TEXTS}
    maps = {part: _expect(dict, values.get(part, {}), path, key, part) for part in ROW_MAPS}
    lists = {part: _expect(list, values.get(part, []), path, key, part) for part in ROW_LISTS}
    signatures = _signatures(known, labels, key, values, path)
    fields = next((one.fields for one in signatures if one.fields), ())
    return Row(
        key=key,
        name=name,
        label=label,
        kind=kind or _kind_of_template(texts["to"]),
        **{**texts, **maps},
        only={arg: (v,) if isinstance(v, str) else tuple(v) for arg, v in only.items()},
        drop=frozenset(lists["drop"]),
        returns=tuple(lists["returns"]) or fields,
        holds=tuple(lists["holds"]),
        next_step=_expect(str, values.get("next", ""), path, key, "next"),
        signatures=signatures,
        file=str(path),
    )


def _signatures(
    known: tuple[Signature, ...],
    labels: frozenset[str],
    key: str,
    values: Mapping[str, Any],
    path: Path,
) -> tuple[Signature, ...]:
    written = values.get("signature")
    if written is not None:
        texts = [written] if isinstance(written, str) else written
        try:
            return tuple(parse_signature(text) for text in texts)
        except SignatureError as error:
            raise TableError(
                f"{path}: {key}: {error}; write it as name(a, b=1) -> Tensor"
            ) from error
    label = key.partition(":")[2]
    own = tuple(one for one in known if one.overload == label)
    if label and own:
        return own
    free = tuple(one for one in known if one.overload not in labels)
    return free or known[:1]


def _kind_of_template(template: str) -> str:
    """What a name without facts is: a template that calls something stands for a function."""
    if not template:
        return "function"
    try:
        called = isinstance(ast.parse(template, mode="eval").body, ast.Call)
    except SyntaxError:
        return "function"
    return "function" if called else "constant"


def make_case(key: str, values: Mapping[str, Any], path: Path) -> Case:
    """One case. Raises TableError where a value has the wrong type."""
    flags = {
        part: _expect(bool, values[part], path, key, part)
        for part in ("random", "gradient")
        if part in values
    }
    texts = {
        part: _expect(str, values.get(part, ""), path, key, part)
        for part in ("forward", "source", "why")
    }
    lists = {
        part: _expect(list, values.get(part, []), path, key, part) for part in ("calls", "inputs")
    }
    modes = _expect(list, values.get("modes", ["pynative", "graph"]), path, key, "modes")
    return Case(
        key=key,
        calls=tuple(lists["calls"]),
        inputs=tuple(lists["inputs"]),
        modes=tuple(modes),
        differs=_expect(dict, values.get("differs", {}), path, key, "differs"),
        file=str(path),
        **texts,
        **flags,
    )


def _expect(kind: type, value: Any, path: Path, key: str, part: str) -> Any:
    if not isinstance(value, kind):
        raise TableError(
            f"{path}: {key}: {part} is {value!r}, a {kind.__name__} is wanted; see docs/table.md"
        )
    return value


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
