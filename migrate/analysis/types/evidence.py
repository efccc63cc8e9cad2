"""Infer from what a variable is used for what its bindings must be: a backward must-analysis.

A use proves a kind where the program fails unless the value is of that kind. It holds for a binding
if every way from there to the normal end of the unit comes by such a use before the name is bound
anew; a way that ends in an exception proves nothing and refutes nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate.analysis.cfg import Edge, Graph, Node
from migrate.analysis.dataflow import Backward, solve
from migrate.analysis.types.kinds import NOTHING, Kind, unknown_but_for

INSIDE = "[]"  # behind a name: what it holds
NEAR = "+"  # behind a name: an operator combines it with a Tensor


class Used(NamedTuple):
    """A use of a variable that proves its kind."""

    name: str
    proved: Kind


class Bound(NamedTuple):
    """A binding of a variable to a value, by the node that is its target.

    ``source``: the variable that has the same object, or the same object before it was moved;
    ``also``: the target that bound what is now found here, one variable of a comprehension.
    """

    name: str
    target: int
    value: Kind
    source: str = ""
    also: int = 0


class Fork(NamedTuple):
    """Events of several ways, of which one is taken."""

    ways: tuple[list[Event], ...]


Event = Used | Bound | Fork


@dataclass(frozen=True, slots=True)
class Proofs:
    """What all ways on from a point prove: a kind by name, None for nothing.

    ``every``: of any other name all is proved, as no way from there comes to an end. A name whose
    kind is `NOTHING` is None there, so that it refutes nothing.
    """

    kinds: dict[str, Kind | None]
    every: bool = False

    def of(self, name: str) -> Kind | None:
        return self.kinds.get(name, NOTHING if self.every else None)

    def changed(self, name: str, kind: Kind | None) -> Proofs:
        if self.of(name) == kind:
            return self
        kinds = dict(self.kinds)
        if kind is None and not self.every:
            del kinds[name]
        else:
            kinds[name] = kind
        return Proofs(kinds, self.every)


_NOTHING_ENDS = Proofs({}, every=True)


def _met(first: Proofs, second: Proofs) -> Proofs:
    """Return what is proved on both ways."""
    if first is second or first == second:
        return first
    if not first.every:
        first, second = second, first
    every = first.every and second.every
    absent = NOTHING if first.every else None
    kinds: dict[str, Kind | None] = {}
    for name, other in second.kinds.items():
        one = first.kinds.get(name, absent)
        both = other if one is other or one == NOTHING else one if other in (one, NOTHING) else None
        if both is not None or every:
            kinds[name] = both
    return Proofs({**first.kinds, **kinds} if every else kinds, every)


@dataclass
class Found:
    """What use proves: kinds by the id of the binding target; targets that are near a Tensor.

    ``parameters`` and ``near`` are the same for what holds at the entry, by name.
    """

    kinds: dict[int, Kind] = field(default_factory=dict)
    beside: set[int] = field(default_factory=set)
    parameters: dict[str, Kind] = field(default_factory=dict)
    near: set[str] = field(default_factory=set)


class _Evidence(Backward[Proofs]):
    def __init__(
        self, events: dict[int, list[Event]], absent: Callable[[Edge], Collection[str]]
    ) -> None:
        self.events = events
        self.absent = absent
        self.reports: dict[int, Found] = {}

    def bottom(self, graph: Graph) -> Proofs:
        return _NOTHING_ENDS

    def final(self, node: Node) -> Proofs:
        return Proofs({}) if node.role.value == "exit" else _NOTHING_ENDS

    def join(self, first: Proofs, second: Proofs) -> Proofs:
        return _met(first, second)

    def edge(self, edge: Edge, state: Proofs) -> Proofs:
        if edge.test is not None:
            for name in self.absent(edge):
                state = state.changed(name, NOTHING)
        return state

    def transfer(self, node: Node, after: Proofs) -> Proofs:
        events = self.events.get(node.index)
        if not events:
            return after
        found = self.reports[node.index] = Found()
        return _before(events, after, found)


def _before(events: Iterable[Event], after: Proofs, found: Found) -> Proofs:
    """Return what is proved before some events, and report what it says of bindings among them."""
    for event in reversed(list(events)):
        if isinstance(event, Used):
            after = after.changed(event.name, event.proved)
        elif isinstance(event, Bound):
            after = _unbound(event, after, found)
        else:
            ways = [_before(way, after, found) for way in event.ways]
            after = ways[0]
            for way in ways[1:]:
                after = _met(after, way)
    return after


def _unbound(event: Bound, after: Proofs, found: Found) -> Proofs:
    proved = after.of(event.name)
    if proved:
        if unknown_but_for(proved, event.value):
            found.kinds[event.target] = proved
        if event.also:
            found.kinds[event.also] = proved
    if after.of(event.name + NEAR):
        found.beside.add(event.target)
    for suffix in ("", NEAR, INSIDE, INSIDE + INSIDE):
        after = after.changed(event.name + suffix, None)
    if proved and event.source and not after.of(event.source):
        after = after.changed(event.source, proved)
    return after


def proofs(
    graph: Graph,
    events: dict[int, list[Event]],
    parameters: Collection[str],
    absent: Callable[[Edge], Collection[str]],
) -> Found:
    """Return what the events prove of the bindings among them and of the parameters.

    Args:
        events: by the index of a node of the graph, in the order of the evaluation.
        absent: the names that are None where an edge is taken.
    """
    found = Found()
    if not any(map(_proving, events.values())):
        return found
    analysis = _Evidence(events, absent)
    start = solve(analysis, graph).before(graph.entry)
    for report in analysis.reports.values():
        found.kinds |= report.kinds
        found.beside |= report.beside
    if start is not None:
        known = {name: start.of(name) for name in parameters}
        found.parameters = {name: kind for name, kind in known.items() if kind}
        found.near = {name for name in parameters if start.of(name + NEAR)}
    return found


def _proving(events: Iterable[Event]) -> bool:
    return any(
        isinstance(e, Used) or (isinstance(e, Fork) and any(map(_proving, e.ways))) for e in events
    )


# -- moves to a device -----------------------------------------------------------------------------

# methods of both Tensors and Modules that give the same kind of object
_SAME = frozenset(
    ("to", "cuda", "cpu", "float", "double", "half", "bfloat16", "requires_grad_", "train", "eval")
)


def moved_itself(node: ast.Assign) -> dict[str, ast.Call]:
    """Return the names bound to themselves moved (``x, y = x.to(d), y.to(d)``), with the call."""
    found = {}
    for target, value in _pairs(node):
        call = _moving(value)
        if call is not None and isinstance(target, ast.Name) and _name(call) == target.id:
            found[target.id] = call
    return found


def same_objects(node: ast.Assign) -> dict[str, str]:
    """Return for names that are bound the other name of the same object, moved or not."""
    pairs = [(t.id, v) for t, v in _pairs(node) if isinstance(t, ast.Name)]
    found = {}
    for target, value in pairs:
        call = _moving(value)
        name = _name(call) if call is not None else getattr(value, "id", "")
        if name == target or (name and all(name != other for other, _ in pairs)):
            found[target] = name
    return found


def moved_elements(node: ast.Assign) -> dict[str, tuple[int, ast.Call]]:
    """Return the names bound to containers of moved elements: the element's target, the call.

    In ``batch = {k: v.to(device) for k, v in batch.items()}`` what batch holds is what v was.
    For a list of such dictionaries the name is ``batch[]``: its elements hold what v was.
    """
    value, inside = _listed(node.value), ""
    made = getattr(value, "value", None) or getattr(value, "elt", None)
    if isinstance(made, (ast.DictComp, ast.ListComp)):
        value, inside = made, INSIDE
        made = value.value if isinstance(value, ast.DictComp) else value.elt
    generators = getattr(value, "generators", ())
    call = _moving(made) if isinstance(made, ast.expr) and len(generators) == 1 else None
    if call is None:
        return {}
    bound = [n for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    origin = next((id(n) for n in bound if n.id == _name(call)), None)
    if origin is None:
        return {}
    targets = [n for t in node.targets for n in getattr(t, "elts", [t])]
    return {n.id + inside: (origin, call) for n in targets if isinstance(n, ast.Name)}


def _listed(node: ast.expr) -> ast.expr:
    """Return the generator of ``list(x.to(device) for x in items)``, else the node itself."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("list", "tuple"):
        return node.args[0] if len(node.args) == 1 and not node.keywords else node
    return node


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    target = node.targets[0]
    if len(node.targets) == 1 and isinstance(target, ast.Tuple):
        values = node.value.elts if isinstance(node.value, ast.Tuple) else []
        return (
            list(zip(target.elts, values, strict=True)) if len(values) == len(target.elts) else []
        )
    return [(t, node.value) for t in node.targets]


def _moving(node: ast.expr) -> ast.Call | None:
    """Return the call of a method on a name whose result is the same object, elsewhere."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in _SAME:
            return None
        if isinstance(node.func.value, ast.Name):
            return node
        node = node.func.value
    return None


def _name(call: ast.Call) -> str:
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    return holder.id if isinstance(holder, ast.Name) else ""
