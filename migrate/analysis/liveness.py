"""Find whether the value of a name may be read from a point on.

What is live at the end is the unit's: importers and the next cell of a notebook read the names of
a module, everyone those of a class. What scopes inside read may be read whenever they are called.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from migrate.analysis.cfg import Graph, Node, Role
from migrate.analysis.dataflow import Backward, Solution, solve
from migrate.analysis.scopes import Scope


@dataclass(frozen=True)
class Liveness:
    """The live names of one unit. Names that are not its own are live everywhere."""

    scope: Scope

    @cached_property
    def _solution(self) -> Solution[int]:
        return solve(_Live(self.scope, self._bits), self.scope.graph)

    @cached_property
    def _bits(self) -> dict[str, int]:
        return {name: 1 << i for i, name in enumerate(sorted(self.scope.local))}

    def before(self, name: str, node: Node) -> bool:
        """Return whether the value that a name has when a node begins may be read."""
        return self._is_in(name, self._solution.before(node))

    def after(self, name: str, node: Node) -> bool:
        """Return whether the value that a name has when a node is done may be read."""
        return self._is_in(name, self._solution.after(node))

    def leaving(self, name: str, statement: ast.stmt) -> bool:
        """Return whether the value that a name has where a statement is left may be read.

        Every way out counts, break, return and exceptions included.
        """
        edges = self.scope.graph.leaving(statement)
        return name not in self._bits or any(self.before(name, e.target) for e in edges)

    def _is_in(self, name: str, state: int | None) -> bool:
        bit = self._bits.get(name)
        return bit is None or bool((state or 0) & bit)


class _Live(Backward[int]):
    def __init__(self, scope: Scope, bits: dict[str, int]) -> None:
        def mask(names: frozenset[str] | set[str]) -> int:
            return sum(bits[n] for n in names if n in bits)

        self.always = mask(scope.captured | scope.rebound.keys())
        if scope.reflected:
            self.always = mask(scope.local)
        whole = isinstance(scope.unit, ast.Module | ast.ClassDef)
        self.at_exit = mask(scope.local) if whole else self.always
        self.effects: dict[int, tuple[int, int]] = {}
        for index, events in enumerate(scope.events):
            read = mask({n.id for n in events.reads})
            gone = {b.name for b in events.binds if b.certain} | set(events.unbinds)
            if read or gone:
                self.effects[index] = (mask(gone) & ~self.always, read)

    def bottom(self, graph: Graph) -> int:
        return self.always

    def final(self, node: Node) -> int:
        return self.at_exit if node.role is Role.EXIT else self.always

    def join(self, first: int, second: int) -> int:
        return first | second

    def transfer(self, node: Node, after: int) -> int:
        effect = self.effects.get(node.index)
        return after if effect is None else after & ~effect[0] | effect[1]
