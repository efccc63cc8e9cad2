"""What the text of a program tells its walks, as cells: a walk is done again where it changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from migrate.analysis.summaries import Changes, Effects, Summaries
from migrate.program import Class, Function, Program
from migrate.receivers import changes, class_texts
from migrate.receivers.elimination import Elimination
from migrate.receivers.fixpoint import Cell
from migrate.receivers.world import World
from migrate.table import Table

Value = TypeVar("Value")


class Told:
    """Answers by the text of the program; part of `Inference`."""

    program: Program
    table: Table
    summaries: Summaries
    _elimination: Elimination

    def _ask(self, cell: Cell, _: type[Value]) -> Value:
        raise NotImplementedError

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


TOLD: Mapping[str, Callable[..., object]] = {
    "overriding": lambda told, function: told.summaries.graph.overriding(function),
    "effects": lambda told, function: told.summaries.of(function),
    "unseen": lambda told: told.summaries.unseen,
    "classes": Told._spelled,
    "holders": lambda told, name: told.program.holders.get(name, ()),
    "rivals": lambda told: told._elimination.rivals,
}
