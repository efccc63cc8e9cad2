"""What walks are told as cells: by the text of the program, and what others put into containers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from migrate.analysis.program import Class, Function, Program
from migrate.analysis.summaries import Changes, Effects, Summaries
from migrate.analysis.types import changes, class_texts
from migrate.analysis.types.elimination import Elimination
from migrate.analysis.types.fixpoint import Cell
from migrate.analysis.types.flow import Flow
from migrate.analysis.types.kinds import NOTHING, Kind, Site
from migrate.analysis.types.outcome import Outcome
from migrate.analysis.types.units import Unit
from migrate.analysis.types.world import Grown, World
from migrate.mapping.table import Table

Value = TypeVar("Value")


class Told:
    """Answers that are cells, so that a walk is done again where they change; see `Inference`."""

    program: Program
    table: Table
    summaries: Summaries
    _elimination: Elimination

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
        """Return what a call, whose parts were evaluated, may change where it stands."""
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

    def put_into(self, function: Function, site: str) -> Kind:
        """What a function puts into the containers of one site."""
        return self._ask(("put into", function, site), Kind)

    def put_into_given(self, function: Function) -> Kind:
        """What a function puts into the containers that it is given."""
        return self._ask(("put into given", function), Kind)

    def kept(self, function: Function) -> frozenset[str]:
        """The sites of attributes and globals that hold what a function is given from then on."""
        return self._ask(("kept", function), frozenset[str])


TOLD: Mapping[str, Callable[..., object]] = {
    "overriding": lambda told, function: told.summaries.graph.overriding(function),
    "effects": lambda told, function: told.summaries.of(function),
    "unseen": lambda told: told.summaries.unseen,
    "classes": Told._spelled,
    "holders": lambda told, name: told.program.holders.get(name, ()),
    "grown": Told._grown,
    "put into": lambda told, function, site: told.grown(function).get(site, (NOTHING,))[0],
    "put into given": lambda told, function: told.found(function).put_into_given,
    "kept": lambda told, function: frozenset(told.found(function).kept),
    "rivals": lambda told: told._elimination.rivals,
}
