"""Find which bindings of a name reach a point, and whether it is bound there on every path.

A state is a set of bits: one for each binding of the unit, and one for each local name that says
"not bound here" (in a class body or module the name then means what it means outside). Definite
assignment is the absence of that bit. ``from m import *`` has a bit for each local name: it may
bind any of them, and what surely binds the name behind it takes its place.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from functools import cached_property

from migrate.analysis.cfg import Edge, Graph, Node, Role, Why
from migrate.analysis.dataflow import Forward, Solution, solve
from migrate.analysis.scopes import STAR, Binding, Scope


@dataclass(frozen=True)
class Reach:
    """What a name may be bound to at a point.

    ``unbound``: on some path the unit has not bound it: a local variable has no value then.
    ``outside``: something that is not among ``bindings`` may give the name its value: it belongs
    to a scope around the unit, or to one that is not known, or ``exec`` may bind it.
    """

    bindings: tuple[Binding, ...]
    unbound: bool
    outside: bool

    @property
    def only(self) -> Binding | None:
        """The one binding that the name surely has its value from, if there is one."""
        known = len(self.bindings) == 1 and not self.unbound and not self.outside
        return self.bindings[0] if known and self.bindings[0].name != STAR else None


@dataclass(frozen=True)
class Bindings:
    """The reaching bindings of one unit."""

    scope: Scope

    @cached_property
    def _bits(self) -> _Bits:
        return _Bits(self.scope)

    @cached_property
    def _solution(self) -> Solution[int]:
        return solve(_Reaching(self._bits), self.scope.graph)

    def before(self, name: str, node: Node) -> Reach:
        """Return what a name may be bound to when a node begins; nothing if it never does."""
        return self._reach(name, self._solution.before(node))

    def after(self, name: str, node: Node) -> Reach:
        """Return what a name may be bound to when a node is done."""
        return self._reach(name, self._solution.after(node))

    @cached_property
    def _by_name(self) -> dict[str, list[Binding]]:
        found: dict[str, list[Binding]] = {}
        for events in self.scope.events:
            for binding in events.binds:
                found.setdefault(binding.name, []).append(binding)
        return found

    def anywhere(self, name: str) -> Reach:
        """Return what a name may be bound to at any time."""
        found = [*self._by_name.get(name, ()), *self._by_name.get(STAR, ())]
        found += [b for b in self.scope.rebound.get(name, ()) if b not in found]
        return Reach(tuple(found), True, self._others(name, True))

    def _others(self, name: str, unbound: bool) -> bool:
        """Return whether a name may have a value that nothing in the unit binds."""
        scope = self.scope
        if name not in scope.local:
            return True
        if isinstance(scope.unit, ast.Module):
            return scope.reflected or (unbound and hasattr(builtins, name))
        return isinstance(scope.unit, ast.ClassDef) and (unbound or scope.reflected)

    def of_read(self, read: ast.Name, node: Node) -> Reach:
        """Return what a name that is read at a node may be bound to.

        The node's own ``:=`` may come before the read, and so may its targets before a read that
        is part of a target (``a, b[a] = ...``).
        """
        targets = self.scope.own.get(id(read))
        if targets is not None:
            return Reach(tuple(Binding(read.id, t, node) for t in targets), False, False)
        if id(read) in self.scope.beyond:
            return Reach((), True, True)
        if id(read) in self.scope.later:
            return self.anywhere(read.id)
        reach = self.before(read.id, node)
        own = [
            b
            for b in self.scope.events[node.index].binds
            if b.name == read.id and b not in reach.bindings and self._may_precede(b, read, node)
        ]
        return Reach((*reach.bindings, *own), reach.unbound, reach.outside) if own else reach

    def _may_precede(self, binding: Binding, read: ast.Name, node: Node) -> bool:
        if binding.place is read:
            return False  # of ``x += 1``
        part = node.part
        if isinstance(part, ast.Assign):
            targets: list[ast.AST | None] = list(part.targets)
        elif isinstance(part, ast.withitem):
            targets = [part.optional_vars]
        else:
            targets = [part] if node.role in (Role.BIND, Role.CASE) else []
        if any(read is n for t in targets if t is not None for n in ast.walk(t)):
            return True
        return binding.place in self._bits.assigned_inside(node)

    def is_bound(self, name: str, node: Node) -> bool:
        """Return whether the unit has surely bound a name on every path to a node."""
        reach = self.before(name, node)
        return not reach.unbound and name in self.scope.local

    def _reach(self, name: str, state: int | None) -> Reach:
        scope, bits = self.scope, self._bits
        if name not in scope.local:
            return Reach(tuple(bits.found((state or 0) & bits.stars)), True, True)
        if state is None:
            return Reach((), False, False)
        own = bits.found(state & bits.of_name[name])
        inner = [b for b in scope.rebound.get(name, ()) if b not in own]
        unbound = bool(state & bits.unbound[name]) or name in scope.deleted
        return Reach((*own, *inner), unbound, self._others(name, unbound))


class _Bits:
    """The numbering of names and bindings of a scope; what each node adds and takes away."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.of_name: dict[str, int] = dict.fromkeys(sorted(scope.local), 0)
        self.unbound = {name: 1 << i for i, name in enumerate(self.of_name)}
        self.initial = (1 << len(self.unbound)) - 1
        self.first = len(self.unbound)
        self.bindings: list[Binding] = []
        self.stars = 0
        self.effects: dict[int, tuple[int, int]] = {}
        own: list[tuple[int, list[tuple[Binding, int]]]] = []
        for index, events in enumerate(scope.events):
            here: list[tuple[Binding, int]] = []
            for binding in events.binds:
                if binding.name in self.of_name or binding.name == STAR:
                    here.append((binding, self._number(binding)))
            if here or events.unbinds:
                own.append((index, here))
        for index, here in own:  # now that the bits of every name are known
            self.effects[index] = self._effect(here, scope.events[index].unbinds)

    def _number(self, binding: Binding) -> int:
        bit = self._new(binding)
        if binding.name != STAR:
            self.of_name[binding.name] |= bit
            return bit
        self.stars |= bit  # for names that the unit does not bind itself
        for name in self.of_name:
            inner = self._new(binding)
            self.of_name[name] |= inner
            bit |= inner
        return bit

    def _new(self, binding: Binding) -> int:
        self.bindings.append(binding)
        return 1 << (self.first + len(self.bindings) - 1)

    def _effect(self, here: list[tuple[Binding, int]], unbinds: list[str]) -> tuple[int, int]:
        kill = gen = 0
        for binding, bit in here:
            gen |= bit
            if binding.certain:
                kill |= self.of_name[binding.name] | self.unbound[binding.name]
        for name in unbinds:
            if name in self.of_name:
                kill |= self.of_name[name]
                gen = gen & ~self.of_name[name] | self.unbound[name]
        return kill, gen

    def found(self, state: int) -> list[Binding]:
        """Return the bindings of a set of bits."""
        state >>= self.first
        result = []
        while state:
            low = state & -state
            result.append(self.bindings[low.bit_length() - 1])
            state ^= low
        return result

    @cached_property
    def conditional(self) -> frozenset[int]:
        """The tests that bind names which depend on their result."""
        return frozenset(
            node.index
            for node in self.scope.graph.nodes
            if node.role is Role.TEST
            and any(not b.certain for b in self.scope.events[node.index].binds)
        )

    def assigned_inside(self, node: Node) -> list[ast.AST]:
        """Return the targets of ``:=`` at a node."""
        if not self.scope.events[node.index].binds or node.part is None:
            return []
        return [n.target for n in ast.walk(node.part) if isinstance(n, ast.NamedExpr)]


class _Reaching(Forward[int]):
    def __init__(self, bits: _Bits) -> None:
        self.bits = bits

    def initial(self, graph: Graph) -> int:
        return self.bits.initial

    def join(self, first: int, second: int) -> int:
        return first | second

    def transfer(self, node: Node, before: int) -> int:
        effect = self.bits.effects.get(node.index)
        return before if effect is None else before & ~effect[0] | effect[1]

    def edge(self, edge: Edge, state: int) -> int:
        """Return the state with only what ``:=`` binds, where the test says that it bound it."""
        if edge.test is None or edge.source.index not in self.bits.conditional:
            return state
        _, gen = self.bits.effects.get(edge.source.index, (0, 0))
        for name in bound_when(edge.test, edge.why is Why.TRUE):
            if name in self.bits.of_name:
                state &= ~((self.bits.of_name[name] | self.bits.unbound[name]) & ~gen)
        return state


def bound_when(test: ast.expr, truth: bool) -> frozenset[str]:
    """Return the names that ``:=`` has surely bound if a test is true (or false)."""
    if isinstance(test, ast.NamedExpr):
        return bound_when(test.value, truth) | {test.target.id}
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return bound_when(test.operand, not truth)
    if isinstance(test, ast.BoolOp):
        goes_on = isinstance(test.op, ast.And)
        so_far: frozenset[str] = frozenset()
        ends: list[frozenset[str]] = []
        for value in test.values:
            ends.append(so_far | bound_when(value, not goes_on))
            so_far |= bound_when(value, goes_on)
        return so_far if truth is goes_on else frozenset.intersection(*ends)
    if isinstance(test, ast.Compare):
        parts = [test.left, *test.comparators]
        evaluated = parts if truth else parts[:2]
        return frozenset().union(*(_surely(p) for p in evaluated))
    return _surely(test)


def _surely(expression: ast.expr) -> frozenset[str]:
    """Return the names that ``:=`` binds whenever an expression is evaluated."""
    found: set[str] = set()
    pending: list[ast.AST] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.NamedExpr):
            found.add(node.target.id)
        if isinstance(node, ast.BoolOp):
            pending.append(node.values[0])
        elif isinstance(node, ast.IfExp):
            pending.append(node.test)
        elif isinstance(node, ast.Compare):
            pending += [node.left, node.comparators[0]]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            pending.append(node.generators[0].iter)
        elif not isinstance(node, ast.Lambda):
            pending += ast.iter_child_nodes(node)
    return frozenset(found)
