"""In: the inputs of a case. Out: the same calls on other kinds of input: shapes, dtypes, edges.

Written cases show that a row holds where its author looked. These show where it holds besides:
torch is the oracle, what torch refuses is no kind of this row. The draws depend on the row's key
alone. Whole numbers are indices or labels more often than not, so they only change their shape.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from migrate.evidence.inputs import InputSpec, draw_spec, parse_input
from migrate.parity.exchange import Array

EDGES = (0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1.5, -2.5, 10.0, -10.0)
LARGE = (1e4, -1.1e4, 88.0, -89.0, 300.0, -310.0, 1e-6, -1.1e-6)
NOT_FINITE = (np.nan, np.inf, -np.inf, -0.0)
FLOATS = ("float32",)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Variant:
    """Generated inputs of one kind. ``gradient``: whether it is compared as well."""

    kind: str
    inputs: Mapping[str, Array]
    gradient: bool = False


def variants(key: str, inputs: Sequence[str]) -> tuple[Variant, ...]:
    """All kinds that make sense for these input specifications; none without floating inputs."""
    specs = [parse_input(text) for text in inputs]
    floating = [i for i, spec in enumerate(specs) if spec.dtype in FLOATS]
    if not floating:
        return ()
    found = []
    for kind, changed in _shapes(specs, floating).items():
        if changed != specs:
            arrays = [draw_spec(spec, f"{key}/{kind}", i) for i, spec in enumerate(changed)]
            found.append(Variant(kind, _named(arrays), gradient=kind != "empty"))
    plain = [draw_spec(spec, key, i) for i, spec in enumerate(specs)]
    for kind, change in _changes(key, specs).items():
        chosen = floating[-1:] if kind == "mixed" else floating
        if kind == "mixed" and len(floating) < 2:
            continue
        arrays = [change(x, i) if i in chosen else x for i, x in enumerate(plain)]
        found.append(Variant(kind, _named(arrays)))
    return tuple(found)


def _named(arrays: Sequence[Array]) -> dict[str, Array]:
    return {f"x{number}": array for number, array in enumerate(arrays)}


def _shapes(specs: list[InputSpec], floating: list[int]) -> dict[str, list[InputSpec]]:
    def all_of(change: Callable[[Shape], Shape]) -> list[InputSpec]:
        return [replace(spec, shape=change(spec.shape)) for spec in specs]

    longest = max(len(spec.shape) for spec in specs)
    found = {
        "0-d": all_of(lambda shape: ()),
        "empty": all_of(lambda shape: (0, *shape[1:])),
        "size 1": all_of(lambda shape: (1,) * len(shape)),
        f"{longest + 1}-d": all_of(lambda shape: (2, *shape)),
    }
    if longest < 3:
        found["4-d"] = all_of(lambda shape: (*(2, 3, 2)[: 4 - longest], *shape))
    if len(floating) > 1:
        last = floating[-1]
        for kind, change in (("broadcast", _flat_first), ("lower rank", _lower)):
            one = replace(specs[last], shape=change(specs[last].shape))
            found[kind] = [*specs[:last], one, *specs[last + 1 :]]
    return found


def _flat_first(shape: Shape) -> Shape:
    return (1, *shape[1:]) if len(shape) > 1 else (1,)


def _lower(shape: Shape) -> Shape:
    return shape[1:]


def _changes(key: str, specs: Sequence[InputSpec]) -> dict[str, Callable[[Array, int], Array]]:
    """Kind -> what becomes of a floating input and its number."""

    def whole(array: Array, index: int) -> Array:
        # all different, with zero and negative numbers where the case admits them
        random = _random(key, "int64", index)
        low = 1 if specs[index].kind in ("positive", "uniform") else -(array.size // 2)
        return np.asarray(random.permutation(array.size).reshape(array.shape) + low)

    def truth(array: Array, index: int) -> Array:
        random = _random(key, "bool", index)
        return np.asarray(random.permutation(np.arange(array.size) % 2 == 0)).reshape(array.shape)

    def double(array: Array, index: int) -> Array:
        return array.astype(np.float64)

    return {
        "float64": double,
        "int64": whole,
        "bool": truth,
        "mixed": whole,
        "edges": _from(EDGES, key, "edges"),
        "large": _from(LARGE, key, "large"),
        "nan and inf": _some(NOT_FINITE, key, "nan"),
    }


def _from(values: tuple[float, ...], key: str, kind: str) -> Callable[[Array, int], Array]:
    def change(array: Array, index: int) -> Array:
        # no two numbers are equal: where ties stand, torch itself gives any index
        random = _random(key, kind, index)
        plain = np.asarray(values)
        rounds = -(-array.size // len(values)) or 1
        drawn = [np.where(plain == 0, 0.37 * i, plain * (1 + 0.0917 * i)) for i in range(rounds)]
        every = np.concatenate([random.permutation(some) for some in drawn])[: array.size]
        return np.asarray(every.reshape(array.shape).astype(array.dtype))

    return change


def _some(values: tuple[float, ...], key: str, kind: str) -> Callable[[Array, int], Array]:
    """A few of the numbers are replaced, the others stay as they were."""

    def change(array: Array, index: int) -> Array:
        random = _random(key, kind, index)
        changed = array.copy().ravel()
        places = random.permutation(changed.size)[: max(1, min(len(values), changed.size // 2))]
        chosen = random.permutation(np.asarray(values))[: len(places)]
        changed[places] = chosen.astype(array.dtype)
        return np.asarray(changed.reshape(array.shape))

    return change


def _random(key: str, kind: str, index: int) -> np.random.RandomState:
    return np.random.RandomState(zlib.crc32(f"{key}/{kind}:{index}".encode()) % 2**31)
