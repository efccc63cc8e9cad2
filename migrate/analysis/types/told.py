"""What walks are told as cells: by the text of the program, and what others put into containers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from migrate.analysis.program import Class, Function, Program
from migrate.analysis.summaries import Changes, Effects, Summaries
from migrate.analysis.types import changes, class_texts
from migrate.analysis.types.contents import (
    ANY_KEY,
    ANYWHERE,
    EVERYWHERE,
    MANY,
    More,
    anything_in,
    bare,
    is_told,
    level,
)
from migrate.analysis.types.elimination import Elimination
from migrate.analysis.types.fixpoint import Cell, Fixpoint
from migrate.analysis.types.flow import Flow
from migrate.analysis.types.kinds import NOTHING, UNKNOWN, Kind, Site, join
from migrate.analysis.types.outcome import Outcome
from migrate.analysis.types.parametric import SHARED
from migrate.analysis.types.units import Unit
from migrate.analysis.types.world import Grown, World
from migrate.mapping.table import Table

Value = TypeVar("Value")
# by class ("" for any, and for a global) and depth: what is put in, under which keys
Put = Mapping[tuple[str, int], tuple[Kind, frozenset[str]]]


@dataclass(eq=False)
class Shared:
    """What units put into attributes and globals, and which of these they make one container."""

    puts: dict[str, dict[Unit, Put]] = field(default_factory=dict)
    putting: dict[Unit, Mapping[str, Put]] = field(default_factory=dict)
    joins: dict[str, dict[Unit, frozenset[str]]] = field(default_factory=dict)
    joining: dict[Unit, frozenset[str]] = field(default_factory=dict)
    anywhere: set[str] = field(
        default_factory=lambda: {ANYWHERE}
    )  # the sites whose group is too large


class Told:
    """Answers that are cells, so that a walk is done again where they change; see `Inference`."""

    program: Program
    table: Table
    summaries: Summaries
    _elimination: Elimination
    _shared: Shared
    _cells: Fixpoint

    def invalidate(self, *cell: Hashable) -> None:
        raise NotImplementedError

    def _ask(self, cell: Cell, _: type[Value]) -> Value:
        raise NotImplementedError

    def found(self, unit: Unit) -> Outcome | Flow:
        raise NotImplementedError

    # -- by the text ----------------------------------------------------------------------------

    def function_of(self, key: str) -> Function | None:
        return self.program.functions.get(key)

    def class_of(self, key: str) -> Class | None:
        return self.program.classes.get(key)

    def overriding(self, function: Function) -> tuple[Function, ...]:
        """The definitions that a call of a method on an instance may run."""
        return self._ask(("overriding", function), tuple)

    def effects(self, function: Function) -> Effects:
        """Return what calling a function of the project may write, mutate, rebind and keep."""
        return self._ask(("effects", function), Effects)

    def unseen(self) -> Effects:
        """Return the effects of code out of sight."""
        return self._ask(("unseen",), Effects)

    def changes(self, call: ast.Call) -> Changes:
        """Return the effects of a call, whose parts were evaluated, on the scope of the call."""
        return changes.of_call(call, cast(World, self), self.summaries)

    def classes(self) -> tuple[Class, ...]:
        """Return all classes of the program; what it spells depends on them as well."""
        return self._ask(("classes",), tuple)[0]  # type: ignore[no-any-return]

    def _spelled(self) -> tuple[tuple[Class, ...], frozenset[str]]:
        named = class_texts.named(self.table, self.program)
        return tuple(self.program.classes.values()), named

    def holders(self, name: str) -> tuple[Class, ...]:
        """Return the classes that have a method, or store an attribute, of a name."""
        return self._ask(("holders", name), tuple)

    # -- contents of containers -----------------------------------------------------------------

    def grown(self, function: Function) -> Grown:
        """What a function puts into the containers that others hold, by their site."""
        return self._ask(("grown", function), dict[Site, tuple[Kind, frozenset[str]]])

    def _grown(self, function: Function) -> Grown:
        grown = dict(self.found(function).grown)
        if function.parent is None:  # its own sites mean nothing to others, nor those of globals
            grown = {s: g for s, g in grown.items() if isinstance(s, str) and s[0] == "."}
        return grown

    def put(self, base: str, classes: Collection[str] = ()) -> More:
        """What the program puts into what an attribute of classes or a global holds, by depth."""
        some: Put = self._ask(("put", base), dict)
        found: dict[int, tuple[Kind, frozenset[str]]] = {}
        for (key, depth), (added, keys) in some.items():
            if not key or key in classes:
                known, others = found.get(depth, (NOTHING, frozenset()))
                found[depth] = (join(known, added), keys | others)
        return found

    def _put(self, base: str) -> Put:
        found: dict[tuple[str, int], tuple[Kind, frozenset[str]]] = {}
        for some in self._shared.puts.get(base, {}).values():
            for place, (added, keys) in some.items():
                known, others = found.get(place, (NOTHING, frozenset()))
                found[place] = (join(known, added), keys | others)
        return found

    def joined_to(self, site: str) -> frozenset[str]:
        """The sites of attributes and globals that may hold the container of such a site."""
        return self._ask(("joined", site), frozenset)

    def _joined_to(self, site: str) -> frozenset[str]:
        """Return the closure over what units join; EVERYWHERE for a group that is too large."""
        found, todo = {site}, [site]
        while todo and len(found) <= MANY and found.isdisjoint(self._shared.anywhere):
            new = self._ask(("joined by units", todo.pop()), frozenset) - found
            found |= new
            todo += new
        if not todo:
            return frozenset(found)
        self._widen(found)
        return EVERYWHERE

    def _joined_by_units(self, site: str) -> frozenset[str]:
        joins = self._shared.joins
        some = (others for s in self._of_kin(site) for others in joins.get(s, {}).values())
        return frozenset().union(*some)

    def _widen(self, group: Collection[str]) -> None:
        """Have the containers of a group of sites hold whatever there is, for good."""
        kin = {k for s in group for k in self._of_kin(s) if is_told(s)}
        for site in sorted(kin - self._shared.anywhere):
            self._shared.anywhere.add(site)
            name, place = _place(site)
            known = self._shared.puts.setdefault(name, {})
            known[ANYWHERE] = {**known.get(ANYWHERE, {}), place: (UNKNOWN, frozenset((ANY_KEY,)))}
            self.invalidate("put", name)
            self.invalidate("joined", site)

    def _of_kin(self, site: str) -> list[str]:
        """Return the sites of the same attribute of all that one object may be of."""
        head, _, key = site.rpartition("@")
        base = key.rstrip("[]")
        owner = self.program.classes.get(base)
        kin = self.summaries.graph.kin(owner) if owner is not None else ()
        return [site, *(f"{head}@{one}{key[len(base) :]}" for one in kin if one != base)]

    def _tell(self, unit: Unit, flow: Flow) -> None:
        """Replace what a unit puts into what others see by what its walk has found."""
        found: dict[str, dict[tuple[str, int], tuple[Kind, frozenset[str]]]] = {}
        for site, (added, keys) in flow.grown.items():
            if isinstance(site, str) and is_told(site):
                base = site.rstrip("[]")
                name, (key, depth) = _place(site)
                around = frozenset(level(base, d) for d in range(depth + 1))
                found.setdefault(name, {})[key, depth] = bare(anything_in(added, around)), keys
        for name in {**found, **self._shared.putting.get(unit, {})}:
            known = self._shared.puts.setdefault(name, {})
            if known.get(unit, {}) != found.get(name, {}):
                known[unit] = found.get(name, {})
                self.invalidate("put", name)
        self._shared.putting[unit] = found
        joined = flow.joined_outside if flow.links else {}
        for site in {**joined, **dict.fromkeys(self._shared.joining.get(unit, ()))}:
            others = self._shared.joins.setdefault(site, {})
            if others.get(unit) != joined.get(site):
                others[unit] = joined.get(site, frozenset())
                for one in self._of_kin(site):
                    self.invalidate("joined by units", one)
        self._shared.joining[unit] = frozenset(joined)

    def _untold(self, units: Collection[Unit]) -> None:
        """Forget what units put that are gone."""
        for unit in units:
            for site in self._shared.joining.pop(unit, ()):
                self._shared.joins[site].pop(unit, None)
            for base in self._shared.putting.pop(unit, ()):
                self._shared.puts[base].pop(unit, None)

    def put_into(self, function: Function, site: str) -> Kind:
        """What a function puts into the containers of one site."""
        return self._ask(("put into", function, site), Kind)

    def put_into_given(self, function: Function) -> Mapping[Site, Kind]:
        """Return what a function puts into the containers among its arguments, by their sites."""
        return self._ask(("put into given", function), dict)

    def traced(self, on: bool) -> dict[Cell, object]:
        """Note what the walk that runs reads from here on, or no more."""
        return self._cells.trace(on)

    def unchanged(self, reads: dict[Cell, object]) -> bool:
        """Return whether cells that a walk has read have the values that they had."""
        return self._cells.same(reads)

    def may_share(self, function: Function) -> bool:
        """Whether some call passes one container for two parameters."""
        return SHARED in self._ask(("passed", function), dict)

    def kept(self, function: Function) -> frozenset[tuple[Site, str]]:
        """Return the arguments that outlive a call, and the names under which they are held."""
        return self._ask(("kept", function), frozenset)


def _place(site: str) -> tuple[str, tuple[str, int]]:
    """Return the name, class and depth under which the contents of a site are kept."""
    base = site.rstrip("[]")
    depth = (len(site) - len(base)) // 2
    attribute, _, key = base[1:].partition("@") if base[0] == "@" else (base, "", "")
    return (f"@{attribute}" if base[0] == "@" else base), (key, depth)


TOLD: Mapping[str, Callable[..., object]] = {
    "overriding": lambda told, function: told.summaries.graph.overriding(function),
    "effects": lambda told, function: told.summaries.of(function),
    "unseen": lambda told: told.summaries.unseen,
    "classes": Told._spelled,
    "holders": lambda told, name: told.program.holders.get(name, ()),
    "grown": Told._grown,
    "put": Told._put,
    "joined": Told._joined_to,
    "joined by units": Told._joined_by_units,
    "put into": lambda told, function, site: told.grown(function).get(site, (NOTHING,))[0],
    "put into given": lambda told, function: dict(told.found(function).put_into_given),
    "kept": lambda told, function: frozenset(told.found(function).kept),
    "rivals": lambda told: told._elimination.rivals,
}
