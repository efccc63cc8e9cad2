"""Remember what the evaluation of a node came to, so that it is not evaluated again for nothing."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from migrate.analysis.cfg import Node, Role
from migrate.analysis.types.fixpoint import Cell
from migrate.analysis.types.frame import Effects, State
from migrate.analysis.types.kinds import Site
from migrate.syntax.trees import within


@dataclass(slots=True)
class Memo:
    """What the evaluation of a node came to, and all that it depends on.

    ``links``: the sites that were joined in the walk, and how many of these came before it.
    """

    before: State
    after: State | None
    outcome: tuple[State | None, State | None] | None
    effects: Effects
    reads: dict[Cell, object]
    links: tuple[list[tuple[Site, Site]], int]
    prunes: bool

    def holds_for(self, node: Node, before: State) -> bool:
        """Return whether a state differs in nothing but variables that the node does not touch.

        Where it does, the memo becomes one of that state.
        """
        old = self.before
        part = node.part
        if part is None or type(part) not in _NAMING:
            return False
        if self.effects.wide or old.paths != before.paths:
            return False
        names = {n.id for n in within(part) if type(n) is ast.Name}
        if node.role in (Role.ITERATE, Role.BIND, Role.SUBJECT):
            names.add(iterated(node.statement))
        for known, now in ((old.env, before.env), (old.notes, before.notes)):
            if any(known.get(n) != now.get(n) for n in names):
                return False
        states = [s for s in (self.after, *(self.outcome or ())) if s is not None]
        if not all(_differ_in(s.env, old.env, names) for s in states):
            return False
        if not all(_differ_in(s.notes, old.notes, names) for s in states):
            return False
        self.after = _rebased(self.after, old, before, names)
        if self.outcome is not None:
            true, false = self.outcome
            self.outcome = _rebased(true, old, before, names), _rebased(false, old, before, names)
        self.before = before
        return True


# the names in these are all the variables that their evaluation reads or binds
_NAMING = frozenset((
    ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Delete,
    *ast.expr.__subclasses__(),
))  # fmt: skip
Held = TypeVar("Held")


def _differ_in(after: dict[str, Held], before: dict[str, Held], names: Collection[str]) -> bool:
    """Return whether two states differ in the variables of these names alone."""
    return after is before or (
        all(v is before.get(n) or n in names for n, v in after.items())
        and all(n in after or n in names for n in before)
    )


def _rebased(after: State | None, old: State, new: State, names: Collection[str]) -> State | None:
    """Return the state after a node that was entered with another state."""
    if after is None or after is old:
        return after and new
    env, notes = new.env, new.notes
    if after.env is not old.env:
        env = {n: v for n, v in env.items() if n not in names}
        env |= {n: after.env[n] for n in names if n in after.env}
    if after.notes is not old.notes:
        notes = {n: v for n, v in notes.items() if n not in names}
        notes |= {n: after.notes[n] for n in names if n in after.notes}
    return State(env, notes, after.paths)


def iterated(statement: ast.AST | None) -> str:
    """Return the name under which a state holds what a loop iterates over, or a match looks at."""
    return f"in {id(statement)}"
