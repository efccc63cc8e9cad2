"""Answer questions about the names of one file: reaching bindings, liveness, definite assignment.

Every answer rests on the control flow graph of the unit (module, class body, function, lambda) in
which a place is evaluated, and is computed when it is first needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from migrate.analysis.bindings import Bindings, Reach
from migrate.analysis.cfg import Carries, Graph, Node, Unit
from migrate.analysis.liveness import Liveness
from migrate.analysis.scopes import Binding, Scope, scope_of


@dataclass(frozen=True, eq=False)
class UnitFacts:
    """What is known of one unit; ``around`` is the unit that it is defined in."""

    scope: Scope
    around: UnitFacts | None

    @property
    def graph(self) -> Graph:
        return self.scope.graph

    @cached_property
    def bindings(self) -> Bindings:
        return Bindings(self.scope)

    @cached_property
    def live(self) -> Liveness:
        return Liveness(self.scope)

    @cached_property
    def _reachable(self) -> dict[int, frozenset[int]]:
        return {}

    def follows(self, first: Node, then: Node) -> bool:
        """Return whether control may come from after one node to another."""
        found = self._reachable.get(first.index)
        if found is None:
            seen: set[int] = set()
            pending = [e.target for e in first.successors]
            while pending:
                node = pending.pop()
                if node.index not in seen:
                    seen.add(node.index)
                    pending += [e.target for e in node.successors]
            found = self._reachable[first.index] = frozenset(seen)
        return then.index in found

    def carries(self, name: str, first: Iterable[Node], then: Node) -> bool:
        """Return whether a name may still have at one node what it has after one of others."""
        events = self.scope.events
        seen: set[int] = set()
        pending = [e.target for node in first for e in node.successors]
        while pending:
            node = pending.pop()
            if node is then:
                return True
            if node.index in seen:
                continue
            seen.add(node.index)
            found = events[node.index]
            bound = name in found.unbinds or any(b.certain and b.name == name for b in found.binds)
            pending += [
                e.target for e in node.successors if not bound or e.carries is not Carries.AFTER
            ]
        return False


@dataclass(frozen=True, eq=False)
class Facts:
    """The flow of names in one file; ``parents`` maps the id of a syntax node to its parent."""

    tree: ast.Module
    parents: Mapping[int, ast.AST]
    graphs: dict[int, Graph] = field(default_factory=dict)  # by the id of their unit

    @cached_property
    def units(self) -> dict[int, UnitFacts]:
        """Every unit of the file by the id of its syntax node."""
        found: dict[int, UnitFacts] = {}
        pending: list[tuple[Scope, UnitFacts | None]] = [(scope_of(self.tree, self.graphs), None)]
        while pending:
            scope, around = pending.pop()
            facts = found[id(scope.unit)] = UnitFacts(scope, around)
            pending += [(inner, facts) for inner in scope.inner]
        return found

    @cached_property
    def _points(self) -> dict[int, tuple[UnitFacts, Node]]:
        return {
            part: (facts, node)
            for facts in self.units.values()
            for part, node in facts.graph.points.items()
        }

    def unit(self, unit: Unit) -> UnitFacts:
        return self.units[id(unit)]

    def point(self, node: ast.AST) -> tuple[UnitFacts, Node] | None:
        """Return where a syntax node is evaluated; None for the module and for statements that are
        not evaluated at all."""
        current: ast.AST | None = node
        while current is not None:
            point = self._points.get(id(current))
            if point is not None:
                return point
            current = self.parents.get(id(current))
        return None

    # bindings

    def reach(self, read: ast.Name) -> Reach:
        """Return the bindings of a name that reach a read.

        For a name of an enclosing scope, these are all bindings in that scope.
        """
        point = self.point(read)
        if point is None:
            return Reach((), True, True)
        facts, node = point
        if self._postponed and self._in_annotation(read):  # evaluated by others, if at all
            inner = self._any(read.id, facts)
            outer = self._any(read.id, facts.around)
            return Reach((*inner.bindings, *outer.bindings), True, True)
        reach = facts.bindings.of_read(read, node)
        if not reach.outside:
            return reach
        around = self._any(read.id, facts.around, facts.scope.elsewhere.get(read.id), facts)
        return Reach(
            (*reach.bindings, *around.bindings), reach.unbound and around.unbound, around.outside
        )

    def values(self, read: ast.Name, parts: bool = False) -> tuple[ast.expr | None, ...]:
        """Return what may have been assigned to a name that is read; None for all that is not
        the value of an assignment: parameters, loops, what is bound elsewhere.

        ``parts``: a value of which the name takes a part, by unpacking, counts as well, and so do
        both sides of ``x += y``.
        """
        reach = self.reach(read)
        found: list[ast.expr | None] = []
        for binding in reach.bindings:
            around = self.parents.get(id(binding.place))
            if parts and isinstance(around, ast.AugAssign):
                found += [around.target, around.value]
            else:
                found.append(self._value(binding.place, parts))
        return (*found, None) if reach.outside else tuple(found)

    def _value(self, place: ast.AST, parts: bool) -> ast.expr | None:
        """Return the expression that an assignment binds a target to; None if there is none."""
        path: list[tuple[int, int]] = []
        parent = self.parents.get(id(place))
        while isinstance(parent, ast.Tuple | ast.List | ast.Starred):
            if isinstance(parent, ast.Starred):
                if not parts:
                    return None
                place, parent = parent, self.parents.get(id(parent))
                continue
            path.append((parent.elts.index(place), len(parent.elts)))  # type: ignore[arg-type]
            place, parent = parent, self.parents.get(id(parent))
        if isinstance(parent, ast.NamedExpr) and place is parent.target:
            return parent.value
        if not isinstance(parent, ast.Assign | ast.AnnAssign) or place is parent.value:
            return None
        value = parent.value
        for index, count in reversed(path):
            plain = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == count
            if not plain or any(isinstance(e, ast.Starred) for e in value.elts):  # type: ignore[union-attr]
                return value if parts else None
            assert isinstance(value, ast.Tuple | ast.List)
            value = value.elts[index]
        return value

    def reach_before(self, name: str, place: ast.AST) -> Reach:
        """Return what a name of the unit may be bound to where the evaluation of a place begins."""
        point = self.point(place)
        return Reach((), True, True) if point is None else point[0].bindings.before(name, point[1])

    def _any(
        self,
        name: str,
        facts: UnitFacts | None,
        declared: type[ast.AST] | None = None,
        inside: UnitFacts | None = None,
    ) -> Reach:
        """Return every binding of a name in the first scope, from one outwards, that has it.

        Those of a class are seen only if it is the first scope, and ``inside`` is none.
        """
        if inside is not None and name in inside.scope.varied:
            places = inside.scope.varied[name]
            node = inside.graph.entry
            return Reach(tuple(Binding(name, p, node) for p in places), False, False)
        first = facts if inside is None else None
        while facts is not None:
            scope = facts.scope
            module = isinstance(scope.unit, ast.Module)
            seen = facts is first or not isinstance(scope.unit, ast.ClassDef)
            if module or (seen and declared is not ast.Global):
                if module or name in scope.local:
                    return facts.bindings.anywhere(name)
                declared = scope.elsewhere.get(name, declared)
            if name in scope.varied and declared is None:
                return self._any(name, None, None, facts)
            facts = facts.around
        return Reach((), True, True)

    @cached_property
    def _postponed(self) -> bool:
        """Whether annotations are not evaluated where they stand."""
        return any(
            isinstance(s, ast.ImportFrom)
            and s.module == "__future__"
            and any(a.name == "annotations" for a in s.names)
            for s in self.tree.body
        )

    def _in_annotation(self, node: ast.AST) -> bool:
        child, parent = node, self.parents.get(id(node))
        while parent is not None and not isinstance(child, ast.stmt):
            if child in (getattr(parent, "annotation", None), getattr(parent, "returns", None)):
                return True
            child, parent = parent, self.parents.get(id(parent))
        return False

    def is_bound(self, name: str, place: ast.AST) -> bool:
        """Return whether the unit of a place has bound a name on every path to it."""
        point = self.point(place)
        if point is None or id(place) in point[0].scope.beyond | point[0].scope.later:
            return False
        return point[0].bindings.is_bound(name, point[1])

    # liveness and order

    def read_after(self, name: str, statement: ast.stmt) -> bool:
        """Return whether the value that a name has where a statement is left may be read."""
        point = self.point(statement)
        return point is None or point[0].live.leaving(name, statement)

    def carries(self, name: str, first: ast.AST, then: ast.AST) -> bool:
        """Return whether a name may still have at one place what it has after another.

        It may between units. After a compound statement, all that it contains counts.
        """
        one, two = self.point(first), self.point(then)
        if one is None or two is None or one[0] is not two[0]:
            return True
        unit, start = one
        nodes = unit.graph.inside(first) if id(first) in unit.graph.spans else (start,)  # type: ignore[arg-type]
        return unit.carries(name, nodes, two[1])

    def may_follow(self, first: ast.AST, then: ast.AST) -> bool:
        """Return whether one place may be evaluated after another was; True between units."""
        one, two = self.point(first), self.point(then)
        if one is None or two is None or one[0] is not two[0]:
            return True
        return one[0].follows(one[1], two[1])
