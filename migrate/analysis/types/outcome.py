"""What the walk of a unit has found that others read, and how values of a cell join and widen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from migrate.analysis.types.fixpoint import Cell
from migrate.analysis.types.kinds import NOTHING, UNKNOWN, Kind, Site, join
from migrate.analysis.types.world import Result

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Outcome:
    """What a walk has found that others may read.

    ``nodes`` are the kinds of expressions that the rest of the program reads by node (defaults,
    annotations, bases, decorators); ``bodies`` the variables of class bodies; ``results``
    what the function gives, where that is other for each call; ``inner`` the variables of
    comprehensions. The rest is what a call puts into containers, see `World.grown`.
    """

    variables: Mapping[str, Kind] = field(default_factory=dict)
    stores: Mapping[str, Kind] = field(default_factory=dict)
    result: Kind = NOTHING
    shown: Mapping[str, Kind] = field(default_factory=dict)
    bodies: Mapping[str, Mapping[str, Kind]] = field(default_factory=dict)
    nodes: Mapping[int, Kind] = field(default_factory=dict)
    results: tuple[Result, ...] = ()
    inner: Mapping[str, Kind] = field(default_factory=dict)
    grown: Mapping[Site, tuple[Kind, frozenset[str]]] = field(default_factory=dict)
    kept: frozenset[tuple[Site, str]] = frozenset()
    put_into_given: Mapping[Site, Kind] = field(default_factory=dict)


NOT_WALKED = Outcome()


def combined(cell: Cell, old: object, new: object) -> object:
    """Join two values of a cell."""
    if cell[0] in ("kept", "joined", "joined by units"):
        return old | new  # type: ignore[operator]
    if isinstance(old, frozenset) and isinstance(new, frozenset):
        return join(old, new)
    if isinstance(old, Outcome) and isinstance(new, Outcome):
        return Outcome(
            _joined(old.variables, new.variables),
            _joined(old.stores, new.stores),
            join(old.result, new.result),
            _agreed(old.shown, new.shown),
            {k: _joined(old.bodies.get(k, {}), v) for k, v in new.bodies.items()},
            {k: join(old.nodes.get(k, NOTHING), v) for k, v in new.nodes.items()},
            tuple(dict.fromkeys((*old.results, *new.results))),
            _joined(old.inner, new.inner),
            _grown(old.grown, new.grown),
            old.kept | new.kept,
            _joined(old.put_into_given, new.put_into_given),
        )
    if isinstance(old, dict) and isinstance(new, dict):
        if cell[0] in ("grown", "put"):
            return _grown(old, new)
        return _agreed(old, new) if cell[0] == "shown" else _joined(old, new)
    return new


def widened(cell: Cell, value: object) -> object:
    """What a cell is that does not settle: unknown."""
    if cell[0] in ("kept", "joined", "joined by units"):
        return value
    if isinstance(value, frozenset):
        return UNKNOWN
    if isinstance(value, Outcome):
        return Outcome(
            dict.fromkeys(value.variables, UNKNOWN),
            dict.fromkeys(value.stores, UNKNOWN),
            UNKNOWN,
            {},
            {k: dict.fromkeys(v, UNKNOWN) for k, v in value.bodies.items()},
            dict.fromkeys(value.nodes, UNKNOWN),
            (),
            dict.fromkeys(value.inner, UNKNOWN),
            {site: (UNKNOWN, keys) for site, (_, keys) in value.grown.items()},
            value.kept,
            dict.fromkeys(value.put_into_given, UNKNOWN),
        )
    if isinstance(value, dict):
        if cell[0] in ("grown", "put"):
            return {site: (UNKNOWN, keys) for site, (_, keys) in value.items()}
        return {} if cell[0] == "shown" else dict.fromkeys(value, UNKNOWN)
    return value


def _joined(old: Mapping[_Key, Kind], new: Mapping[_Key, Kind]) -> dict[_Key, Kind]:
    names = {**old, **new}
    return {n: join(old.get(n, NOTHING), new.get(n, NOTHING)) for n in names}


def _grown(
    old: Mapping[_Key, tuple[Kind, frozenset[str]]], new: Mapping[_Key, tuple[Kind, frozenset[str]]]
) -> dict[_Key, tuple[Kind, frozenset[str]]]:
    found = dict(old)
    for site, (added, keys) in new.items():
        known, others = found.get(site, (NOTHING, frozenset()))
        found[site] = (join(known, added), keys | others)
    return found


def _agreed(old: Mapping[str, Kind], new: Mapping[str, Kind]) -> dict[str, Kind]:
    return {n: k for n, k in new.items() if old.get(n) == k}
