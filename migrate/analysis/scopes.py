"""Find what every point of a unit reads and binds, and what the scopes inside of it share.

Lambdas, functions and generator expressions run later, at any time: what they read of the unit is
*captured*, what they bind in it (``nonlocal``, ``global``) is *rebound*. The body of a class runs
where the class is defined, and so do comprehensions and generator expressions that their call
consumes at once (``sum(x for x in y)``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate.analysis.cfg import Graph, Node, Role, Unit, evaluated, graph_of
from migrate.syntax.trees import all_names, all_parameters, children

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
UNITS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_CONSUMERS = frozenset(
    "sum any all max min list tuple set frozenset dict sorted bytes bytearray".split()
)
_CONSUMING_METHODS = frozenset("join extend update fromkeys writelines".split())
# what they see or change of a scope is not written down
_REFLECTION = frozenset("locals vars eval exec globals dir".split())
STAR = "*"


@dataclass(frozen=True, eq=False, slots=True)
class Binding:
    """A place that binds a name.

    ``place`` is the ast.Name, arg, alias, pattern, handler or definition. ``certain``: it binds
    whenever its node does its work; a ``:=`` behind ``and`` does not. ``name`` is "*" for a star
    import, which may bind any name.
    """

    name: str
    place: ast.AST
    node: Node
    certain: bool = True


@dataclass(slots=True)
class Events:
    """What a node reads, binds and unbinds, in the unit's own scope."""

    reads: list[ast.Name] = field(default_factory=list)
    binds: list[Binding] = field(default_factory=list)
    unbinds: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Scope:
    """The names of a unit. It is not changed once it is built.

    ``local``: the names that the unit itself binds, and those that scopes inside bind in it.
    ``elsewhere``: names declared global or nonlocal. ``captured``: local names that scopes inside
    read. ``rebound``: where scopes inside bind local names. ``deleted``: local names that scopes
    inside unbind. ``own``: the targets that a variable of a comprehension reads, by id of the Name.
    ``beyond``: reads in comprehensions of a class body, which do not see its names, by id.
    ``later``: reads of generator expressions that are not run at once, by id.
    ``varied``: the variables of the comprehensions that a lambda is in. ``reflected``:
    locals(), exec() and the like are called in it.
    """

    unit: Unit
    graph: Graph
    events: list[Events]
    inner: list[Scope] = field(default_factory=list)
    own: dict[int, tuple[ast.Name, ...]] = field(default_factory=dict)
    beyond: set[int] = field(default_factory=set)
    later: set[int] = field(default_factory=set)
    varied: Mapping[str, tuple[ast.Name, ...]] = field(default_factory=dict)
    elsewhere: dict[str, type[ast.AST]] = field(default_factory=dict)
    local: frozenset[str] = frozenset()
    captured: frozenset[str] = frozenset()
    rebound: dict[str, list[Binding]] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    reflected: bool = False
    # what it takes from the scopes around it, and does to them
    free: frozenset[str] = frozenset()
    outwards: dict[type[ast.AST], dict[str, list[Binding]]] = field(default_factory=dict)
    outward_deletions: frozenset[str] = frozenset()


def scope_of(unit: Unit, graphs: dict[int, Graph] | None = None) -> Scope:
    """Return the scope of a unit, with all that are inside of it.

    ``graphs`` are those that are known, by the id of their unit; what is missing is added.
    """
    graphs = {} if graphs is None else graphs
    pending: list[tuple[Scope, bool]] = [(_open(unit, graphs), False)]
    first = pending[0][0]
    while pending:
        scope, done = pending.pop()
        if done:
            _close(scope)
            continue
        pending.append((scope, True))
        walker = _Walker(scope)
        for unit in walker.run():
            scope.inner.append(_open(unit, graphs))
            scope.inner[-1].varied = walker.varied.get(id(unit), _NOTHING)
        pending += [(s, False) for s in scope.inner]
    return first


def _open(unit: Unit, graphs: dict[int, Graph]) -> Scope:
    graph = graphs.get(id(unit))
    if graph is None:
        graph = graphs[id(unit)] = graph_of(unit)
    return Scope(unit, graph, [Events() for _ in graph.nodes])


def _close(scope: Scope) -> None:
    """Fill in what follows from the events of a scope and from the scopes inside."""
    unit = scope.unit
    reads = {n.id for e in scope.events for n in e.reads}
    bound = scope.local | {b.name for e in scope.events for b in e.binds} - {STAR}
    free = scope.captured.union(*(s.free for s in scope.inner))
    unbound = frozenset[str]().union(*(s.outward_deletions for s in scope.inner))
    below: dict[type[ast.AST], dict[str, list[Binding]]] = {ast.Global: {}, ast.Nonlocal: {}}
    for inner in scope.inner:
        for kind, bindings in inner.outwards.items():
            for name, some in bindings.items():
                below[kind].setdefault(name, []).extend(some)
    if isinstance(unit, ast.Module):
        scope.local = bound | below[ast.Global].keys()
        resolved: type[ast.AST] = ast.Global
    else:
        scope.local = bound - scope.elsewhere.keys()
        resolved = ast.Nonlocal
    if isinstance(unit, ast.ClassDef):  # functions inside do not see its names
        scope.free = free | reads
        scope.captured = frozenset()
    else:
        scope.free = (free | reads) - scope.local
        scope.captured = free & scope.local
        for name in below[resolved].keys() & scope.local:
            scope.rebound.setdefault(name, []).extend(below[resolved].pop(name))
        scope.deleted = unbound & scope.local
    scope.reflected = bool(reads & _REFLECTION)
    for events in scope.events:
        for binding in events.binds:
            declared = scope.elsewhere.get(binding.name)
            if declared is not None:
                below[declared].setdefault(binding.name, []).append(binding)
    scope.outwards = below
    own = frozenset(n for e in scope.events for n in e.unbinds if n in scope.elsewhere)
    scope.outward_deletions = (unbound - scope.deleted) | own


class _Item(NamedTuple):
    """A syntax node that waits.

    ``hidden`` are the variables of the comprehensions around it; ``certain``: it is evaluated
    whenever its program point is; ``deferred``: it is evaluated later, by a generator.
    """

    node: ast.AST
    hidden: Mapping[str, tuple[ast.Name, ...]]
    certain: bool
    deferred: bool = False
    consumed: bool = False  # a generator expression that is run at once

    def at(self, node: ast.AST, certain: bool = True, consumed: bool = False) -> _Item:
        return _Item(node, self.hidden, self.certain and certain, self.deferred, consumed)


_NOTHING: Mapping[str, tuple[ast.Name, ...]] = {}


class _Walker:
    """Collects the events of every node of a scope, and the units that are defined in it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.units: list[Unit] = []
        self.varied: dict[int, Mapping[str, tuple[ast.Name, ...]]] = {}
        self.captured: set[str] = set()
        self.declared: set[str] = set()  # local without a binding: ``x: int``

    def run(self) -> list[Unit]:
        unit, graph = self.scope.unit, self.scope.graph
        if isinstance(unit, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            self.scope.events[graph.entry.index].binds += [
                Binding(p.arg, p, graph.entry) for p in all_parameters(unit.args)
            ]
        for node in graph.nodes:
            self._node(node, self.scope.events[node.index])
        self.scope.captured = frozenset(self.captured)
        self.scope.local = frozenset(self.declared)
        return self.units

    def _node(self, node: Node, events: Events) -> None:
        part = node.part
        if isinstance(part, ast.ExceptHandler) and part.name:
            if node.role is Role.UNBIND:
                events.unbinds.append(part.name)
                return
            events.binds.append(Binding(part.name, part, node))
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            events.binds.append(Binding(part.name, part, node))
            self.units.append(part)
            for parameter in getattr(part, "type_params", ()):
                self._capture(parameter)  # their bounds are evaluated when they are needed
        elif isinstance(part, ast.Global | ast.Nonlocal):
            self.scope.elsewhere.update(dict.fromkeys(part.names, type(part)))
            return
        elif isinstance(part, ast.Import | ast.ImportFrom):
            for alias in part.names:
                name = alias.asname or alias.name.partition(".")[0]
                events.binds.append(Binding(name, alias, node, name != STAR))
            return
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            events.reads.append(part.target)
        elif isinstance(part, ast.AnnAssign) and part.value is None:
            self.declared |= {part.target.id} if isinstance(part.target, ast.Name) else set()
            self._expression(part.annotation, node, events)
            if not isinstance(part.target, ast.Name):
                self._expression(part.target, node, events)
            return
        for index, piece in enumerate(evaluated(node)):
            # the message of an assert is evaluated only where it fails
            self._expression(piece, node, events, not (index and isinstance(part, ast.Assert)))

    def _capture(self, top: ast.AST) -> None:
        self.captured |= all_names(top)

    def _expression(self, top: ast.AST, node: Node, events: Events, certain: bool = True) -> None:
        pending = [_Item(top, _NOTHING, certain)]
        while pending:
            item = pending.pop()
            one = item.node
            if type(one) in _WHOLE:
                pending += [item.at(c) for c in children(one) if type(c) is not ast.Constant]
            elif isinstance(one, ast.Name):
                self._name(one, item, node, events)
            elif isinstance(one, ast.Lambda):
                self.units.append(one)
                if item.hidden:
                    self.varied[id(one)] = item.hidden
                defaults = [*one.args.defaults, *one.args.kw_defaults]
                pending += [item.at(d) for d in defaults if d is not None]
            elif isinstance(one, COMPREHENSIONS):
                pending += _comprehension(one, item)
            elif isinstance(one, ast.Call):
                now = _consumes(one)
                pending += [item.at(c, consumed=now) for c in children(one)]
            elif isinstance(one, ast.Starred):
                pending.append(item.at(one.value, consumed=True))
            elif isinstance(one, ast.BoolOp | ast.IfExp | ast.Compare):
                pending += _conditional(one, item)
            else:
                if isinstance(one, ast.MatchAs | ast.MatchStar | ast.MatchMapping):
                    name = one.rest if isinstance(one, ast.MatchMapping) else one.name
                    if name is not None:
                        events.binds.append(Binding(name, one, node))
                elif type(one).__name__ == "TypeAlias":
                    self._capture(one)
                pending += [item.at(c) for c in children(one)]

    def _name(self, name: ast.Name, item: _Item, node: Node, events: Events) -> None:
        targets = item.hidden.get(name.id)
        if targets is not None:
            self.scope.own[id(name)] = targets
        elif isinstance(name.ctx, ast.Store):
            binding = Binding(name.id, name, node, item.certain and not item.deferred)
            events.binds.append(binding)
            if item.deferred:
                self.captured.add(name.id)
                self.scope.rebound.setdefault(name.id, []).append(binding)
        else:
            if item.hidden is not _NOTHING and isinstance(self.scope.unit, ast.ClassDef):
                self.scope.beyond.add(id(name))
                self.captured.add(name.id)
                return
            events.reads.append(name)
            if isinstance(name.ctx, ast.Del):
                events.unbinds.append(name.id)
            elif item.deferred:
                self.captured.add(name.id)
                self.scope.later.add(id(name))


# expressions all of whose parts are evaluated where they are
_WHOLE = frozenset((ast.Constant, ast.Attribute, ast.Tuple, ast.List, ast.Subscript, ast.BinOp,
                    ast.UnaryOp, ast.keyword, ast.Slice, ast.Dict, ast.Expr))  # fmt: skip


def _comprehension(one: ast.expr, item: _Item) -> Iterable[_Item]:
    """Yield the parts of a comprehension: only its first iterable is evaluated outside of it."""
    generators: list[ast.comprehension] = one.generators  # type: ignore[attr-defined]
    hidden = dict(item.hidden)
    for target in (n for g in generators for n in ast.walk(g.target)):
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
            hidden[target.id] = (*hidden.get(target.id, ()), target)
    first = generators[0].iter
    deferred = item.deferred or (isinstance(one, ast.GeneratorExp) and not item.consumed)
    yield item.at(first)
    for part in children(one):
        below = children(part) if isinstance(part, ast.comprehension) else (part,)
        yield from (_Item(p, hidden, False, deferred) for p in below if p is not first)


def _consumes(call: ast.Call) -> bool:
    """Return whether a call has taken all of a generator when it returns."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _CONSUMING_METHODS
    return getattr(call.func, "id", "") in _CONSUMERS


def _conditional(one: ast.BoolOp | ast.IfExp | ast.Compare, item: _Item) -> Iterable[_Item]:
    """Yield the parts of an expression: those behind the first may not be evaluated."""
    if isinstance(one, ast.BoolOp):
        first, rest = one.values[:1], one.values[1:]
    elif isinstance(one, ast.IfExp):
        first, rest = [one.test], [one.body, one.orelse]
    else:
        first, rest = [one.left, one.comparators[0]], one.comparators[1:]
    yield from (item.at(p) for p in first)
    yield from (item.at(p, certain=False) for p in rest)
