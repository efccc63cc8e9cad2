"""In: the kinds of one function's variables. Out: the frame in which its expressions get theirs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property

from migrate.program import Function
from migrate.receivers.kinds import (
    NONE,
    TENSOR,
    UNKNOWN,
    Kind,
    alike,
    is_all,
    unknown_but_for,
    without_none,
)
from migrate.receivers.moves import INSIDE
from migrate.receivers.recorded import RECORDED, is_plain
from migrate.receivers.world import World
from migrate.syntax import children

Environment = dict[str, Kind]
_TESTS = frozenset({"isinstance", "type", "hasattr", "callable", "is_tensor", "issubclass"})


_Method = Callable[["Frame", ast.expr], Kind]


@cache
def _method(frame: type[Frame], node: type[ast.expr]) -> _Method | None:
    """What evaluates the expressions of a class."""
    return getattr(frame, f"_{node.__name__}", None)


@dataclass
class Frame:
    """One function (None: a module's top level) in which expressions are evaluated.

    ``env`` holds what the variables are at this point, ``evidence`` what their use proved of
    ``fresh`` parameters (not bound anew so far); ``variables`` joins all that a name was ever bound
    to. ``near`` are fresh parameters combined with Tensors, ``assumed`` says for methods of unknown
    receivers why they can only be Tensors. For variables of which nothing is known ``origins``
    names the target that bound them, ``elements`` the one that bound what they hold, ``moved`` the
    call that moved it (to a device); ``traced`` is what use proved of such a target, ``known`` what
    an earlier walk proved; ``shown`` is what use proved of parameters in all walks.
    """

    world: World
    path: str
    function: Function | None
    env: Environment = field(default_factory=dict)
    evidence: dict[str, Kind] = field(default_factory=dict)
    variables: Environment = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    near: set[str] = field(default_factory=set)
    assumed: dict[int, str] = field(default_factory=dict)
    origins: dict[str, int] = field(default_factory=dict)
    elements: dict[str, int] = field(default_factory=dict)
    moved: dict[str, ast.Call] = field(default_factory=dict)
    traced: dict[int, Kind] = field(default_factory=dict)
    known: dict[int, Kind] = field(default_factory=dict)
    shown: dict[str, Kind] = field(default_factory=dict)

    def kind(self, node: ast.expr | None) -> Kind:
        """The kind of an expression; every expression inside it is evaluated as well."""
        if node is None:
            return NONE
        method = _method(type(self), type(node))  # type: ignore[arg-type]  # classes do hash
        found = method(self, node) if method is not None else self._others(node)
        if self.world.recorded.places:
            found = self._as_recorded(node, found)
        self.world.kinds[id(node)] = found
        return found

    def _as_recorded(self, node: ast.expr, found: Kind) -> Kind:
        """What a run of the torch code has shown of a receiver of which too little is known."""
        seen = self.world.recorded.at(self.path, node)
        holder = self.world.program.files[self.path].parents.get(id(node))
        if seen is None or not isinstance(holder, ast.Attribute):
            return found
        settled = self.world.recorded.settled(self.path, node, found, self.world.program.classes)
        if settled != found or is_plain(seen, found):
            self.assumed[id(holder)] = f"{ast.unparse(node)} {RECORDED} {seen.text}"
        return settled

    def _others(self, node: ast.expr) -> Kind:
        for child in children(node):
            if isinstance(child, ast.expr):
                self.kind(child)
        return UNKNOWN

    def names_of(self, node: ast.expr) -> frozenset[str]:
        """The names of the alternatives of an expression that was evaluated before."""
        return frozenset(a.kind for a in self.world.kinds.get(id(node), UNKNOWN))

    def saw_tensor(self, node: ast.expr) -> None:
        """The program would fail here unless ``node`` were a Tensor."""
        self.saw(node, TENSOR)

    def saw(self, node: ast.expr, proved: Kind) -> None:
        """The program would fail here unless ``node`` were of this kind."""
        if isinstance(node, ast.Name) and node.id in self.env:
            if unknown_but_for(proved, self.env[node.id]):
                proved = alike(proved, without_none(self.env[node.id]))
                self.env[node.id] = self.world.kinds[id(node)] = proved
                if node.id in self.fresh and node.id not in self.examined:
                    self.evidence[node.id] = proved
                self._trace(node, proved)
        elif unknown_but_for(proved, self.world.kinds.get(id(node), UNKNOWN)):
            known = without_none(self.world.kinds.get(id(node), UNKNOWN))
            proved = self.world.kinds[id(node)] = alike(proved, known)
            holder = node.value if isinstance(node, ast.Subscript) else None
            if isinstance(holder, ast.Name) and holder.id in self.elements:
                self.traced.setdefault(self.elements[holder.id], proved)

    def _trace(self, node: ast.expr, proved: Kind) -> None:
        """What is proved of a variable holds where it was bound."""
        name = node.id if isinstance(node, ast.Name) else ""
        if name in self.origins and name not in self.examined:
            self.traced.setdefault(self.origins[name], proved)

    def recalled(self, target: ast.Name, value: Kind) -> Kind:
        """The kind that a target is bound to: what a later use proved, where it says nothing."""
        self.origins.pop(target.id, None)
        self.elements.pop(target.id, None)
        self.elements.pop(target.id + INSIDE, None)
        self.moved.pop(target.id, None)
        if value != UNKNOWN:
            return value
        self.origins[target.id] = id(target)
        return self.known.get(id(target), value)

    def saw_beside(self, node: ast.expr, other: Kind) -> None:
        """An operator combines ``node`` with something."""
        if not isinstance(node, ast.Name) or not is_all(other, "Tensor"):
            return
        if node.id in self.fresh and node.id not in self.examined:
            self.near.add(node.id)

    @cached_property
    def examined(self) -> frozenset[str]:
        """Names that the function tests for their type: use in one branch proves nothing there."""
        found = set()
        file = self.world.program.files[self.path]
        for node in self.function.nodes if self.function is not None else file.nodes:
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
                callee = node.func
                name = getattr(callee, "attr", "") or getattr(callee, "id", "")
                if name in _TESTS:
                    found.add(node.args[0].id)
        return frozenset(found)
