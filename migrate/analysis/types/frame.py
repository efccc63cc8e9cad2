"""Hold the state of the kind analysis at one point, and evaluate expressions in it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

from migrate.analysis.program import Function, method_of
from migrate.analysis.types.captured import Captured
from migrate.analysis.types.evidence import INSIDE, NEAR, Event, Fork, Used
from migrate.analysis.types.kinds import (
    NONE,
    NOTHING,
    TENSOR,
    UNKNOWN,
    Kind,
    Site,
    alike,
    is_all,
    join,
    unknown_but_for,
    without_none,
)
from migrate.analysis.types.recorded import is_plain
from migrate.analysis.types.world import World
from migrate.records.result import RECORDED
from migrate.syntax.trees import children

Environment = dict[str, Kind]
Grown = tuple[Kind, frozenset[str]]  # what is put into containers, and under which keys
_TESTS = frozenset({"isinstance", "type", "hasattr", "callable", "is_tensor", "issubclass"})
_Method = Callable[["Frame", ast.expr], Kind]


@cache
def _method(frame: type[Frame], node: type[ast.expr]) -> _Method | None:
    """Return the method that evaluates the expressions of a class."""
    return getattr(frame, f"_{node.__name__}", None)


# the number of links, the answers, the sites
Reached = tuple[int, tuple[tuple[str, frozenset[str]], ...], frozenset[Site]]


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of a variable beside its kind, until it is bound anew.

    ``near``: an operator combined it with a Tensor. ``moved``: the call that moved it to a device,
    or (``inside``) what it holds. ``told``: its kind before a test narrowed it to a layer.
    """

    near: bool = False
    moved: ast.Call | None = None
    inside: str = ""
    told: Kind | None = None


_NO_NOTE = Note()
Notes = dict[str, Note]
Paths = dict[tuple[str, str], Kind]  # ("x", "h") for what ``x.h`` was bound to


class State(NamedTuple):
    """The kinds of the variables, and of attributes of variables (``paths``), at one point.

    A variable that is absent is unbound on every path to that point. States are immutable once they
    are propagated.
    """

    env: Environment
    notes: Notes
    paths: Paths


def joined(first: State, second: State) -> State:
    """Return what holds where either state may hold.

    An unbound local fails when it is read, so that only the kind of the other way counts; what is
    known of an attribute has to be known on both.
    """
    if first is second:
        return first
    env, notes, paths = first.env, first.notes, first.paths
    if env is not second.env:
        env = _joined_kinds(first, second)
    if notes is not second.notes and notes:
        found = {n: _both(note, second.notes.get(n, _NO_NOTE)) for n, note in notes.items()}
        notes = {n: note for n, note in found.items() if note != _NO_NOTE}
    if paths is not second.paths and paths:
        paths = {p: join(v, second.paths[p]) for p, v in paths.items() if p in second.paths}
    return State(env, notes, paths)


def _joined_kinds(first: State, second: State) -> Environment:
    one, other = first.env, second.env
    env = one | other
    for name, mine in one.items():
        value = other.get(name)
        if value is None:
            continue
        if value is mine or value == mine:
            env[name] = mine  # one object for one kind: states are often compared
            continue
        told = first.notes.get(name, _NO_NOTE).told
        if told == value or second.notes.get(name, _NO_NOTE).told == mine:
            env[name] = value if told == value else mine
        else:
            env[name] = join(mine, value)
    return env


def _both(first: Note, second: Note) -> Note:
    if first == second:
        return first
    moved = first.moved if second.moved is not None and first.inside == second.inside else None
    told = first.told if first.told == second.told else None
    return Note(first.near and second.near, moved, first.inside if moved else "", told)


def widened(old: State, new: State) -> State:
    """Return a state in which what still changes is unknown."""
    env = {n: v if old.env.get(n, v) == v else UNKNOWN for n, v in new.env.items()}
    paths = {p: v for p, v in new.paths.items() if old.paths.get(p, v) == v}
    return State(env, new.notes, paths)


@dataclass(slots=True)
class Effects:
    """What the evaluation of one point has done beside changing the state.

    ``bound``: the variables that it binds; ``stores``: the attributes of ``self``; ``result``: what
    it returns or yields; ``grown``: what is put into the
    containers of a site; ``events``: what it proves and binds, in order; ``assumed``: what it
    assumes of nodes, and why; ``inner``: the variables of its comprehensions; ``links``: sites that
    it joins; ``recalled``: what was known of the bindings in it; ``pruned``: whether a test in it
    cannot come out one way; ``lasting``: whether all that it does is noted here; ``wide``: whether
    it reads or changes variables that are not named there.
    """

    bound: Environment = field(default_factory=dict)
    stores: Environment = field(default_factory=dict)
    result: Kind = NOTHING
    grown: dict[Site, Grown] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    assumed: dict[int, str] = field(default_factory=dict)
    inner: Environment = field(default_factory=dict)
    links: list[tuple[Site, Site]] = field(default_factory=list)
    recalled: list[tuple[int, Kind | None, bool]] = field(default_factory=list)
    pruned: bool = False
    lasting: bool = True
    wide: bool = False


@dataclass
class Frame:
    """One unit (a function; None: a module or class body) in which expressions are evaluated.

    ``env``, ``notes`` and ``paths`` are the state at this point. ``variables`` joins all that a
    name was ever bound to, ``inner`` what those of its comprehensions were. ``assumed`` says for
    methods of unknown receivers why they can only be Tensors. ``known`` and ``beside``: what use
    proves of a binding, by the id of the node that binds. ``links`` are sites of containers that
    may be one.
    """

    world: World
    path: str
    function: Function | None
    env: Environment = field(default_factory=dict)
    notes: Notes = field(default_factory=dict)
    paths: Paths = field(default_factory=dict)
    variables: Environment = field(default_factory=dict)
    inner: Environment = field(default_factory=dict)
    assumed: dict[int, str] = field(default_factory=dict)
    known: dict[int, Kind] = field(default_factory=dict)
    beside: set[int] = field(default_factory=set)
    links: dict[Site, set[Site]] = field(default_factory=dict)
    joined: list[tuple[Site, Site]] = field(default_factory=list)  # the links in their order
    # what was found behind sites, as long as the links and the answers of the program are the same
    reached: dict[frozenset[Site], Reached] = field(default_factory=dict)
    effects: Effects = field(default_factory=Effects)
    shared: bool = False  # whether env and notes belong to a state as well
    prunes: bool = True  # whether a way ends where a test cannot come out so by what is known
    pruned: bool = False

    # -- the state ------------------------------------------------------------------------------

    def enter(self, state: State) -> None:
        """Go on from a state."""
        self.env, self.notes, self.paths = state.env, state.notes, state.paths
        self.shared = True

    def leave(self) -> State:
        """Return the state at this point; it is not changed any more."""
        self.shared = True
        return State(self.env, self.notes, self.paths)

    def assign(self, name: str, value: Kind) -> None:
        """Set the kind of a variable, and nothing else."""
        self._own()
        self.env[name] = value

    def learn(self, name: str, value: Kind) -> None:
        """Refine the kind of a variable by a use or a test, if only the unit itself binds it."""
        if (self.function, name) not in self.captured.bound:
            self.assign(name, value)

    def annotate(self, name: str, note: Note) -> None:
        """Set what is known of a variable beside its kind."""
        self._own()
        self.notes[name] = note

    def forget(self, name: str) -> None:
        """Drop all that is known of a variable."""
        self._own()
        self.env.pop(name, None)
        self.notes.pop(name, None)
        if self.paths:
            self.paths = {p: v for p, v in self.paths.items() if p[0] != name}

    def note(self, name: str) -> Note:
        """Return what is known of a variable beside its kind."""
        return self.notes.get(name, _NO_NOTE)

    def _own(self) -> None:
        if self.shared:
            self.env, self.shared = dict(self.env), False
            self.notes, self.paths = dict(self.notes), dict(self.paths)

    # -- expressions ----------------------------------------------------------------------------

    def kind(self, node: ast.expr | None) -> Kind:
        """Return the kind of an expression; every expression inside it is evaluated as well."""
        if node is None:
            return NONE
        method = _method(type(self), type(node))  # type: ignore[arg-type]  # classes do hash
        found = method(self, node) if method is not None else self._others(node)
        if self.world.recorded.places:
            found = self._as_recorded(node, found)
        self.world.kinds[id(node)] = found
        return found

    def _as_recorded(self, node: ast.expr, found: Kind) -> Kind:
        """Return what a run of the torch code has shown of a receiver that is not known."""
        seen = self.world.recorded.at(self.path, node)
        holder = self.world.program.files[self.path].parents.get(id(node))
        if seen is None or not isinstance(holder, ast.Attribute):
            return found
        settled = self.world.recorded.settled(self.path, node, found, self.world.program.classes)
        if settled != found or is_plain(seen, found):
            self.assume(holder, f"{ast.unparse(node)} {RECORDED} {seen.text}")
        return settled

    def _others(self, node: ast.expr) -> Kind:
        for child in children(node):
            if isinstance(child, ast.expr):
                self.kind(child)
        return UNKNOWN

    def names_of(self, node: ast.expr) -> frozenset[str]:
        """Return the names of the alternatives of an expression that was evaluated before."""
        return frozenset(a.kind for a in self.world.kinds.get(id(node), UNKNOWN))

    def assume(self, node: ast.AST, why: str) -> None:
        """Note why something is assumed of a node."""
        self.assumed[id(node)] = why
        self.effects.assumed[id(node)] = why

    # -- evidence -------------------------------------------------------------------------------

    def forked(self, *ways: list[Event]) -> None:
        """Note events of which only those of one way happen."""
        if any(ways):
            self.effects.events.append(Fork(ways))

    def saw_tensor(self, node: ast.expr) -> None:
        """Note that the program fails here unless ``node`` is a Tensor."""
        self.saw(node, TENSOR)

    def saw(self, node: ast.expr, proved: Kind) -> None:
        """Note that the program fails here unless ``node`` is of this kind."""
        if isinstance(node, ast.Constant):  # ``F.linear(x, w, None)``
            return
        value = self.world.kinds.get(id(node), UNKNOWN)
        if isinstance(node, ast.Name) and node.id in self.env:
            value = self.env[node.id]
        if not unknown_but_for(proved, value):
            return
        proved = self.world.kinds[id(node)] = alike(proved, without_none(value))
        if isinstance(node, ast.Name) and node.id in self.env:
            self.learn(node.id, proved)
            self.proved(node.id, proved)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            self.proved(node.value.id + INSIDE, proved)

    def proved(self, name: str, proved: Kind) -> None:
        """Note what a use proves of a variable, or of what it holds."""
        base = name.removesuffix(INSIDE).removesuffix(INSIDE)
        if base not in self.examined and (self.function, base) not in self.captured.bound:
            self.effects.events.append(Used(name, proved))

    def recalled(self, target: ast.Name, value: Kind) -> Kind:
        """Return the kind that a target is bound to: what later uses prove, where it is unknown."""
        proved = self.known.get(id(target))
        if proved is None or not unknown_but_for(proved, value):
            return value
        return alike(proved, without_none(value)) | (value & NONE)

    def saw_beside(self, node: ast.expr, other: Kind) -> None:
        """Note that an operator combines ``node`` with something."""
        if not isinstance(node, ast.Name) or node.id not in self.env:
            return
        if not is_all(other, "Tensor") or not unknown_but_for(TENSOR, self.env[node.id]):
            return
        if node.id not in self.examined:
            note = self.note(node.id)
            self.annotate(node.id, Note(True, note.moved, note.inside, note.told))
            self.effects.events.append(Used(node.id + NEAR, TENSOR))

    @cached_property
    def first_parameter(self) -> str:
        """Return the name of the object whose method the unit is, or is defined in."""
        method = method_of(self.function)
        parameters = method.parameters if method is not None else []
        return parameters[0].arg if parameters else ""

    @cached_property
    def captured(self) -> Captured:
        """Return what functions inside of the unit do to its variables."""
        return self.world.captured(self.path)

    @cached_property
    def examined(self) -> frozenset[str]:
        """Return names that the unit tests for their type: use in a branch proves nothing there."""
        found = set()
        file = self.world.program.files[self.path]
        for node in self.function.nodes if self.function is not None else file.of(ast.Call):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
                callee = node.func
                name = getattr(callee, "attr", "") or getattr(callee, "id", "")
                if name in _TESTS:
                    found.add(node.args[0].id)
        return frozenset(found)
