"""In: the state of an optimizer in one framework's names. Out: in the other's, where it is exact.

torch numbers the weights in the order in which its optimizer was given them; here that is the
order of ``model.parameters()``, and every moment must have the shape of its weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from migrate.parity.exchange import (
    Array,
    ArrayStore,
    Spec,
    apply_layout,
    as_dict,
    entries,
    undo_layout,
)
from migrate.records.result import ModelResult


@dataclass(frozen=True)
class Kind:
    """One optimizer: torch's moments -> prefixes of MindSpore's, and MindSpore's count of steps.

    ``asks`` are settings of its groups that tell it from others, ``spare`` moments that torch
    has only with some setting and MindSpore always.
    """

    moments: Mapping[str, str]
    asks: frozenset[str]
    step: str = ""
    spare: frozenset[str] = frozenset()


KINDS = (
    Kind(
        {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq", "max_exp_avg_sq": "max_exp_avg_sq"},
        frozenset({"betas", "amsgrad"}), "state_step", frozenset({"max_exp_avg_sq"}),
    ),
    Kind(
        {"square_avg": "mean_square", "momentum_buffer": "moment", "grad_avg": "mean_grad"},
        frozenset({"alpha", "centered"}), "", frozenset({"momentum_buffer", "grad_avg"}),
    ),
    Kind({"momentum_buffer": "accum"}, frozenset({"dampening", "nesterov"}), "",
         frozenset({"momentum_buffer"})),
)  # fmt: skip
Keys = list[Any]
SETTINGS = frozenset(
    "lr betas eps weight_decay amsgrad maximize momentum dampening nesterov alpha centered "
    "initial_lr".split()
)
_STARTED = "stat"  # MindSpore's SGD: 1 until the first step has filled the moment, then 0
_ORDER = "its weights are taken in the order of model.parameters()"


@dataclass(frozen=True)
class Held:
    """What the file holds beside the optimizer: the model's weights by torch's names."""

    model: ModelResult
    store: ArrayStore
    weights: Mapping[str, Spec] = field(default_factory=dict)


@dataclass(frozen=True)
class Moments:
    """The converted tree, or None and why; ``places``: old place -> new one."""

    tree: Spec | None
    why: str = ""
    places: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def _kind(groups: list[dict[str, Spec]]) -> Kind | None:
    settings = set(groups[0]) if groups else set()
    return next((kind for kind in KINDS if kind.asks <= settings), None)


def _refused(spec: Spec, held: Held, count: int | None) -> str:
    """Return why the state of these groups is not converted; empty when it is."""
    groups = [entries(one) for one in entries(spec)["param_groups"].get("items", [])]
    if _kind(groups) is None:
        return "no exact form of this optimizer's state is known"
    if len(groups) != 1:
        return "the order of weights in several groups is not in the file"
    model = held.model
    if not model.parameters or not all(model.weight_names.get(key) for key in model.parameters):
        return "not every parameter of the model has a partner"
    count = len(groups[0]["params"].get("items", [])) if count is None else count
    if count != len(model.parameters):
        return f"it holds {count} weights, the model has {len(model.parameters)}"
    return ""


def to_mindspore_moments(spec: Spec, held: Held) -> Moments:
    """Return the state as ``stateas_dict()`` of the converted optimizer has it."""
    parameters = held.model.parameters
    groups = [entries(one) for one in entries(spec)["param_groups"].get("items", [])]
    kind = _kind(groups)
    why = _refused(spec, held, None)
    if why or kind is None:
        return Moments(None, why)
    if any(key not in held.weights for key in parameters):
        return Moments(None, "the weights that it belongs to are not in the file")
    numbered = {key: entries(one) for key, one in entries(entries(spec)["state"]).items()}
    rows = {key: numbered.get(str(number), {}) for number, key in enumerate(parameters)}
    steps = {_number(row["step"], held.store) if "step" in row else 0.0 for row in rows.values()}
    if kind.step and len(steps) > 1:
        return Moments(None, "its weights have made different numbers of steps")
    made: dict[str, Spec] = {}
    places: dict[str, str] = {}
    for number, (key, row) in enumerate(rows.items()):
        for moment, prefix in kind.moments.items():
            array = _moment(row, moment, held.weights[key], held.store)
            if array is None:
                return Moments(None, f"{moment} of {key} has another shape than the weight")
            new = f"{prefix}.{held.model.weight_names[key]}"
            made[new] = _stored(apply_layout(array, _layout(held, key)), held.weights[key], held)
            if _is_tensor(row.get(moment)):
                places[f"{number}.{moment}"] = new
            if prefix == "accum":
                mark = np.full_like(array, float(not _is_tensor(row.get(moment))))
                mark = apply_layout(mark, _layout(held, key))
                name = f"{_STARTED}.{held.model.weight_names[key]}"
                made[name] = _stored(mark, held.weights[key], held)
    if kind.step:
        made[kind.step] = _whole(int(steps.pop()), "int32", held.store)
        places |= {f"{number}.step": kind.step for number in range(len(rows))}
    return Moments(_tree(made, groups[0], held, list(made)), "", places, (_ORDER,))


def _layout(held: Held, key: str) -> str:
    return held.model.weight_layouts.get(key, "")


def _is_tensor(spec: Spec | None) -> bool:
    return spec is not None and spec["t"] == "tensor"


def _moment(row: Mapping[str, Spec], moment: str, weight: Spec, store: ArrayStore) -> Array | None:
    """One moment; zeros where torch keeps none yet, None where the shape is not the weight's."""
    spec = row.get(moment)
    if spec is None or spec["t"] != "tensor":
        return np.zeros_like(store.get(weight["key"]))
    return store.get(spec["key"]) if spec["shape"] == weight["shape"] else None


def _stored(array: Array, like: Spec, held: Held) -> Spec:
    key = held.store.put(array)
    return {"t": "tensor", "key": key, "dtype": like["dtype"], "shape": list(array.shape)}


def _tree(state: Mapping[str, Spec], group: Mapping[str, Spec], held: Held, keys: Keys) -> Spec:
    """Return the two entries of an optimizer's state dict."""
    numbers = [{"t": "value", "v": n} for n in range(len(held.model.parameters))]
    settings = {key: one for key, one in group.items() if key in SETTINGS}
    only = as_dict({**settings, "params": {"t": "list", "items": numbers}})
    rows = {"t": "dict", "keys": keys, "items": list(state.values())}
    return as_dict({"state": rows, "param_groups": {"t": "list", "items": [only]}})


def _number(spec: Spec, store: ArrayStore) -> float:
    return float(store.get(spec["key"])) if spec["t"] == "tensor" else float(spec["v"])


def _whole(number: float, dtype: str, store: ArrayStore) -> Spec:
    return {"t": "tensor", "key": store.put(np.asarray(number, dtype)), "dtype": dtype,
            "shape": []}  # fmt: skip


def to_torch_moments(spec: Spec, held: Held) -> Moments:
    """Return the state as ``stateas_dict()`` of torch's optimizer has it."""
    state = entries(entries(spec)["state"])
    groups = [entries(one) for one in entries(spec)["param_groups"].get("items", [])]
    kind = _kind(groups)
    first = next(iter(kind.moments.values())) if kind else ""
    why = _refused(spec, held, sum(name.startswith(f"{first}.") for name in state))
    if why or kind is None:
        return Moments(None, why)
    rows: dict[str, Spec] = {}
    places: dict[str, str] = {}
    unused = groups[0].get("momentum", {}).get("v") == 0  # then torch's SGD keeps no moment
    for number, key in enumerate(() if unused and first == "accum" else held.model.parameters):
        found, why = _torch_row(kind, state, key, held)
        if why:
            return Moments(None, why)
        name = held.model.weight_names[key]
        places |= {f"{prefix}.{name}": f"{number}.{moment}"
                   for moment, prefix in kind.moments.items() if moment in found}  # fmt: skip
        rows[str(number)] = as_dict(found)
    places |= {kind.step: "step"} if kind.step else {}
    return Moments(_tree(rows, groups[0], held, list(range(len(rows)))), "", places, (_ORDER,))


def _torch_row(
    kind: Kind, state: Mapping[str, Spec], key: str, held: Held
) -> tuple[dict[str, Spec], str]:
    """Return the state of one weight, or why it cannot be told."""
    name = held.model.weight_names[key]
    if kind.step and kind.step not in state:
        return {}, f"{kind.step} is not in the file"
    # RMSprop of torch counts steps that its formula does not use; MindSpore's does not count
    step = _number(state[kind.step], held.store) if kind.step else 0.0
    found = (
        {} if "accum" in kind.moments.values() else {"step": _whole(step, "float32", held.store)}
    )
    for moment, prefix in kind.moments.items():
        spec = state.get(f"{prefix}.{name}")
        if spec is None:
            return {}, f"{prefix}.{name} is not in the file"
        array = undo_layout(held.store.get(spec["key"]), _layout(held, key))
        mark = state.get(f"{_STARTED}.{name}") if prefix == "accum" else None
        empty = np.any(held.store.get(mark["key"])) if mark else not np.any(array)
        if moment in kind.spare and empty:
            continue
        found[moment] = _stored(array, spec, held)
    return found, ""
