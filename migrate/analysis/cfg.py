"""Build the control flow graph of a module, class body, function or lambda.

A node is one program point: a simple statement, or the part of a compound one that is evaluated
there. An edge says why control takes it, and which state of its source it carries: most carry the
state after the source; the end of a ``for`` and a ``case`` that does not match carry the state
before, since nothing was bound; an exception may carry either.

Not modelled: exceptions that come from outside (signals, lack of memory) at points that cannot
raise by themselves, and functions that never return (``sys.exit``), which fall through.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from migrate.analysis.statements import (
    catches_all,
    constant_truth,
    head_of,
    irrefutable,
    may_raise,
    may_swallow,
)

Unit = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
TRY: tuple[type[ast.stmt], ...] = (ast.Try, *([ast.TryStar] if sys.version_info >= (3, 11) else []))


class Role(Enum):
    """What happens at a node."""

    ENTRY = "entry"
    EXIT = "exit"  # the normal end: a return, or the end of the body
    RAISED = "raised"  # an exception leaves the unit
    STATEMENT = "statement"  # a simple statement; the body of a lambda
    TEST = "test"  # of if, while, assert; the guard of a case
    ITERATE = "iterate"  # the iterable of a for, once, before the loop
    BIND = "bind"  # the next element, bound to the target of a for
    ENTER = "enter"  # a with item: its manager, __enter__, its target
    LEAVE = "leave"  # __exit__ of a with: at the end of its body, and where it may swallow
    HANDLER = "handler"  # the type and the name of an except clause
    UNBIND = "unbind"  # the name of an except clause is deleted when the clause is left
    SUBJECT = "subject"  # of a match
    CASE = "case"  # a pattern and the names it binds
    DEFINITION = "definition"  # def and class: decorators, defaults, bases; a class body runs there


class Why(Enum):
    """Why control takes an edge."""

    NEXT = "next"
    TRUE = "true"
    FALSE = "false"
    EXCEPTION = "exception"


class Carries(Enum):
    """Which state of its source an edge carries."""

    AFTER = "after"
    BEFORE = "before"
    EITHER = "either"


@dataclass(eq=False, slots=True)
class Node:
    """One program point; ``part`` is what is evaluated there, ``statement`` what it belongs to.

    ``part`` by role: the statement (STATEMENT, DEFINITION, TEST of assert, LEAVE), the test, the
    iterable, the target of the for, the withitem, the ExceptHandler (HANDLER, UNBIND), the subject,
    the pattern; None for ENTRY, EXIT and RAISED. The graph is not changed once it is built.
    """

    index: int
    role: Role
    part: ast.AST | None = None
    statement: ast.AST | None = None
    successors: list[Edge] = field(default_factory=list, repr=False)
    predecessors: list[Edge] = field(default_factory=list, repr=False)

    @property
    def line(self) -> int:
        part = self.part.context_expr if isinstance(self.part, ast.withitem) else self.part
        return getattr(part, "lineno", 0)


@dataclass(eq=False, slots=True)
class Edge:
    """A way from one node to the next; ``test`` is what was true or false on it, if anything."""

    source: Node
    target: Node
    why: Why = Why.NEXT
    test: ast.expr | None = None
    carries: Carries = Carries.AFTER


@dataclass(eq=False)
class Graph:
    """The nodes of a unit in the order of the text; ``entry``, ``exit`` and ``raised`` come first.

    Nodes that control never comes to are part of ``nodes``, but not of ``order``.
    """

    unit: Unit
    nodes: tuple[Node, ...]
    points: Mapping[int, Node] = field(repr=False)  # by id of a statement or of an evaluated part
    spans: Mapping[int, tuple[int, int]] = field(repr=False)  # of the nodes, by id of a statement

    @property
    def entry(self) -> Node:
        return self.nodes[0]

    @property
    def exit(self) -> Node:
        return self.nodes[1]

    @property
    def raised(self) -> Node:
        return self.nodes[2]

    @cached_property
    def order(self) -> tuple[Node, ...]:
        """The nodes that control may come to, in reverse postorder: a loop before what follows it.

        What follows a loop is then visited once the loop has its fixpoint.
        """
        seen = {self.entry.index}
        found: list[Node] = []
        pending = [(self.entry, reversed(self.entry.successors))]
        while pending:
            node, edges = pending[-1]
            for edge in edges:
                if edge.target.index not in seen:
                    seen.add(edge.target.index)
                    pending.append((edge.target, reversed(edge.target.successors)))
                    break
            else:
                found.append(node)
                pending.pop()
        return tuple(reversed(found))

    def inside(self, statement: ast.stmt) -> tuple[Node, ...]:
        """Return the nodes of a statement and of all that it contains."""
        start, end = self.spans[id(statement)]
        return self.nodes[start:end]

    def leaving(self, statement: ast.stmt) -> tuple[Edge, ...]:
        """Return the edges that lead out of a statement."""
        start, end = self.spans[id(statement)]
        return tuple(
            edge
            for node in self.nodes[start:end]
            for edge in node.successors
            if not start <= edge.target.index < end
        )

    def at(self, node: ast.AST, parents: Mapping[int, ast.AST]) -> Node | None:
        """Return the point at which a syntax node is evaluated; None if that is in another unit.

        What is inside of a nested function or class is evaluated where that is defined.
        """
        current: ast.AST | None = node
        while current is not None and current is not self.unit:
            point = self.points.get(id(current))
            if point is not None:
                return point
            current = parents.get(id(current))
        return None


def graph_of(
    unit: Unit,
    swallows: Callable[[ast.withitem], bool] | None = None,
    entered: Set[int] = frozenset(),
) -> Graph:
    """Return the control flow graph of a unit.

    ``swallows``: whether the manager of a with item may swallow exceptions; the default knows the
    managers by their names (`may_swallow`). ``entered``: the ids of ``for`` statements that are
    taken to go round once at least.
    """
    return _Builder(unit, swallows or may_swallow, entered).build()


def evaluated(node: Node) -> tuple[ast.AST, ...]:
    """Return what is evaluated at a node, in the order of the evaluation; targets come last."""
    part = node.part
    if part is None or node.role in (Role.UNBIND, Role.LEAVE):
        return ()
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
        return (*part.decorator_list, *head_of(part))
    if isinstance(part, ast.ClassDef):
        return (*part.decorator_list, *part.bases, *part.keywords)
    if isinstance(part, ast.ExceptHandler):
        return (part.type,) if part.type is not None else ()
    if isinstance(part, ast.withitem):
        both = (part.context_expr, part.optional_vars)
        return tuple(p for p in both if p is not None)
    if isinstance(part, ast.Assert):
        return (part.test,) if part.msg is None else (part.test, part.msg)
    if isinstance(part, ast.Assign):
        return (part.value, *part.targets)
    if isinstance(part, ast.AugAssign):
        return (part.target, part.value)
    if isinstance(part, ast.AnnAssign):
        both = (part.annotation, part.target)
        return both if part.value is None else (part.value, *both)
    return (part,)


class _Way(Enum):
    """A continuation of a ``finally`` other than the next statement."""

    RETURN = "return"
    BREAK = "break"
    CONTINUE = "continue"
    RAISE = "raise"


@dataclass(slots=True)
class _End:
    """An edge whose target is not known yet."""

    source: Node
    why: Why = Why.NEXT
    test: ast.expr | None = None
    carries: Carries = Carries.AFTER


_Ends = list[_End]


@dataclass(slots=True)
class _Loop:
    head: Node
    breaks: _Ends = field(default_factory=list)
    continues: _Ends = field(default_factory=list)


@dataclass(slots=True)
class _Catch:
    """What comes here by exception: handlers, a with that may swallow."""

    raised: _Ends = field(default_factory=list)


@dataclass(slots=True)
class _Named:
    """The body of ``except E as name``: the name is unbound on every way out of it."""

    handler: ast.ExceptHandler
    raised: _Ends = field(default_factory=list)


@dataclass(slots=True)
class _Finally:
    entries: _Ends = field(default_factory=list)
    ways: set[_Way] = field(default_factory=set)


class _Builder:
    """Turns statements into nodes; open ends are passed from one to the next."""

    def __init__(
        self, unit: Unit, swallows: Callable[[ast.withitem], bool], entered: Set[int]
    ) -> None:
        self.unit = unit
        self.swallows = swallows
        self.entered = entered
        self.nodes: list[Node] = []
        self.points: dict[int, Node] = {}
        self.spans: dict[int, tuple[int, int]] = {}
        self.frames: list[_Loop | _Catch | _Named | _Finally] = []
        self.dead: set[int] = set()
        self.entry, self.exit, self.raised = (
            self._make(role) for role in (Role.ENTRY, Role.EXIT, Role.RAISED)
        )

    def build(self) -> Graph:
        ends: _Ends = [_End(self.entry)]
        if isinstance(self.unit, ast.Lambda):
            node = self._node(Role.STATEMENT, self.unit.body, self.unit.body, ends)
            self._raise([self._either(node)])
            ends = [_End(node)]
        else:
            ends = self._block(self.unit.body, ends)
        self._connect(ends, self.exit)
        return Graph(self.unit, tuple(self.nodes), self.points, self.spans)

    # nodes and edges

    def _make(
        self, role: Role, part: ast.AST | None = None, statement: ast.AST | None = None
    ) -> Node:
        node = Node(len(self.nodes), role, part, statement)
        self.nodes.append(node)
        return node

    def _node(self, role: Role, part: ast.AST, statement: ast.AST, ends: Iterable[_End]) -> Node:
        node = self._make(role, part, statement)
        ends = list(ends)
        if all(e.source.index in self.dead for e in ends):
            self.dead.add(node.index)
        self._connect(ends, node)
        if role not in (Role.UNBIND, Role.LEAVE):
            self.points[id(part)] = node
            self.points.setdefault(id(statement), node)
        return node

    @staticmethod
    def _connect(ends: Iterable[_End], target: Node) -> None:
        for end in ends:
            edge = Edge(end.source, target, end.why, end.test, end.carries)
            end.source.successors.append(edge)
            target.predecessors.append(edge)

    @staticmethod
    def _either(node: Node) -> _End:
        return _End(node, Why.EXCEPTION, None, Carries.EITHER)

    def _raise(self, ends: _Ends) -> None:
        """Lead exceptions to the innermost clause that sees them."""
        for frame in reversed(self.frames):
            if isinstance(frame, _Catch | _Named):
                frame.raised += ends
                return
            if isinstance(frame, _Finally):
                self._enter(frame, ends, _Way.RAISE)
                return
        self._connect(ends, self.raised)

    def _jump(self, way: _Way, ends: _Ends) -> None:
        """Lead a return, break or continue outwards, through what runs on its way."""
        for frame in reversed(self.frames):
            if isinstance(frame, _Named):
                ends = [_End(self._node(Role.UNBIND, frame.handler, frame.handler, ends))]
            elif isinstance(frame, _Finally):
                self._enter(frame, ends, way)
                return
            elif isinstance(frame, _Loop) and way is _Way.BREAK:
                frame.breaks += ends
                return
            elif isinstance(frame, _Loop) and way is _Way.CONTINUE:
                self._connect(ends, frame.head)
                frame.continues += ends
                return
        self._connect(ends, self.exit)

    def _enter(self, frame: _Finally, ends: _Ends, way: _Way) -> None:
        if any(e.source.index not in self.dead for e in ends):
            frame.entries += ends
            frame.ways.add(way)

    # statements

    def _block(self, statements: list[ast.stmt], ends: _Ends) -> _Ends:
        for statement in statements:
            ends = self._statement(statement, ends)
        return ends

    def _statement(self, node: ast.stmt, ends: _Ends) -> _Ends:
        start = len(self.nodes)
        ends = self._kind(node, ends)
        self.points.setdefault(id(node), self.nodes[start])
        self.spans[id(node)] = (start, len(self.nodes))
        return ends

    def _kind(self, node: ast.stmt, ends: _Ends) -> _Ends:
        if isinstance(node, ast.If):
            return self._if(node, ends)
        if isinstance(node, ast.While):
            return self._while(node, ends)
        if isinstance(node, ast.For | ast.AsyncFor):
            return self._for(node, ends)
        if isinstance(node, ast.With | ast.AsyncWith):
            return self._with(node, ends)
        if isinstance(node, TRY):
            return self._try(node, ends)  # type: ignore[arg-type]
        if isinstance(node, ast.Match):
            return self._match(node, ends)
        if isinstance(node, ast.Assert):
            point = self._test(node, node, ends, node.test)
            fails, passes = self._branches(point, node.test)
            self._raise(fails)
            return passes
        return self._simple(node, ends)

    def _simple(self, node: ast.stmt, ends: _Ends) -> _Ends:
        defines = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        point = self._node(Role.DEFINITION if defines else Role.STATEMENT, node, node, ends)
        if may_raise(node):
            self._raise([self._either(point)])
        if isinstance(node, ast.Raise):
            return []
        for kind, way in _JUMPS:
            if isinstance(node, kind):
                self._jump(way, [_End(point)])
                return []
        return [_End(point)]

    def _test(self, part: ast.AST, statement: ast.AST, ends: _Ends, test: ast.expr) -> Node:
        point = self._node(Role.TEST, part, statement, ends)
        if not isinstance(test, ast.Constant):
            self._raise([self._either(point)])
        return point

    @staticmethod
    def _branches(point: Node, test: ast.expr) -> tuple[_Ends, _Ends]:
        """Return the ends where a test is false and where it is true; none where it never is."""
        truth = constant_truth(test)
        false = [] if truth is True else [_End(point, Why.FALSE, test)]
        true = [] if truth is False else [_End(point, Why.TRUE, test)]
        return false, true

    def _if(self, node: ast.If, ends: _Ends) -> _Ends:
        found: _Ends = []
        while True:  # a chain of elif is as deep as it is long
            point = self._test(node.test, node, ends, node.test)
            ends, true = self._branches(point, node.test)
            found += self._block(node.body, true)
            below = node.orelse
            if len(below) != 1 or not isinstance(below[0], ast.If):
                return found + self._block(below, ends)
            node = below[0]

    def _while(self, node: ast.While, ends: _Ends) -> _Ends:
        point = self._test(node.test, node, ends, node.test)
        loop = _Loop(point)
        false, true = self._branches(point, node.test)
        self.frames.append(loop)
        self._connect(self._block(node.body, true), point)
        self.frames.pop()
        return self._block(node.orelse, false) + loop.breaks

    def _for(self, node: ast.For | ast.AsyncFor, ends: _Ends) -> _Ends:
        start = self._node(Role.ITERATE, node.iter, node, ends)
        point = self._node(Role.BIND, node.target, node, [_End(start)])
        self._raise([self._either(start), self._either(point)])
        loop = _Loop(point)
        self.frames.append(loop)
        again = self._block(node.body, [_End(point, Why.TRUE)])
        self._connect(again, point)
        self.frames.pop()
        over = [_End(point, Why.FALSE, None, Carries.BEFORE)]
        over = [*again, *loop.continues] if id(node) in self.entered else over
        return self._block(node.orelse, over) + loop.breaks

    def _with(self, node: ast.With | ast.AsyncWith, ends: _Ends) -> _Ends:
        catch: _Catch | None = None
        for item in node.items:
            point = self._node(Role.ENTER, item, node, ends)
            self._raise([self._either(point)])
            ends = [_End(point)]
            if catch is None and self.swallows(item):
                catch = _Catch()
                self.frames.append(catch)
        ends = self._block(node.body, ends)
        if catch is not None:
            self.frames.pop()
        if ends:
            point = self._node(Role.LEAVE, node, node, ends)
            self._raise([self._either(point)])
            ends = [_End(point)]
        if catch is not None and catch.raised:
            point = self._node(Role.LEAVE, node, node, catch.raised)
            self._raise([self._either(point)])
            ends = [*ends, _End(point)]
        return ends

    def _match(self, node: ast.Match, ends: _Ends) -> _Ends:
        point = self._node(Role.SUBJECT, node.subject, node, ends)
        self._raise([self._either(point)])
        found: _Ends = []
        ends = [_End(point)]
        for case in node.cases:
            point = self._node(Role.CASE, case.pattern, node, ends)
            self._raise([self._either(point)])
            matched = [_End(point, Why.TRUE)]
            ends = (
                [] if irrefutable(case.pattern) else [_End(point, Why.FALSE, None, Carries.BEFORE)]
            )
            if case.guard is not None:
                point = self._test(case.guard, node, matched, case.guard)
                false, matched = self._branches(point, case.guard)
                ends += false
            found += self._block(case.body, matched)
        return found + ends

    def _try(self, node: ast.Try, ends: _Ends) -> _Ends:
        last = _Finally()
        if node.finalbody:
            self.frames.append(last)
        if node.handlers:
            catch = _Catch()
            self.frames.append(catch)
            ends = self._block(node.body, ends)
            self.frames.pop()
            ends = self._block(node.orelse, ends)
            star = not isinstance(node, ast.Try)
            caught = self._handlers_of_group if star else self._handlers
            ends = ends + caught(node.handlers, catch.raised)
        else:
            ends = self._block(node.body, ends)
        if not node.finalbody:
            return ends
        self.frames.pop()
        falls = any(e.source.index not in self.dead for e in ends)
        ends = self._block(node.finalbody, [*ends, *last.entries])
        for way in _Way:  # in a fixed order
            if way is _Way.RAISE and way in last.ways:
                self._raise(_raised_on(ends))
            elif way in last.ways:
                self._jump(way, ends)
        return ends if falls else []

    def _handlers(self, handlers: list[ast.ExceptHandler], ends: _Ends) -> _Ends:
        """Return the ends of the clauses; what none of them takes is raised on."""
        found: _Ends = []
        for handler in handlers:
            point = self._handler(handler, ends)
            ends = [_End(point, Why.FALSE, None, Carries.BEFORE)]
            found += self._handled(handler, point)
            if catches_all(handler):
                return found
        self._raise(_raised_on(ends))
        return found

    def _handlers_of_group(self, handlers: list[ast.ExceptHandler], ends: _Ends) -> _Ends:
        """Return the ends of ``except*`` clauses: each may take a part of the group."""
        for handler in handlers:
            point = self._handler(handler, ends)
            catch = _Catch()
            self.frames.append(catch)
            taken = self._handled(handler, point)
            self.frames.pop()
            ends = [_End(point, Why.FALSE, None, Carries.BEFORE), *taken, *catch.raised]
        self._raise(_raised_on(ends))
        return ends

    def _handler(self, handler: ast.ExceptHandler, ends: _Ends) -> Node:
        point = self._node(Role.HANDLER, handler, handler, ends)
        if handler.type is not None:
            self._raise([_End(point, Why.EXCEPTION, None, Carries.BEFORE)])
        return point

    def _handled(self, handler: ast.ExceptHandler, point: Node) -> _Ends:
        """Return the ends of the body of a clause; its name is unbound there."""
        ends = [_End(point, Why.TRUE)]
        if handler.name is None:
            return self._block(handler.body, ends)
        frame = _Named(handler)
        self.frames.append(frame)
        ends = self._block(handler.body, ends)
        self.frames.pop()
        if frame.raised:
            point = self._node(Role.UNBIND, handler, handler, frame.raised)
            self._raise([_End(point, Why.EXCEPTION)])
        if ends:
            ends = [_End(self._node(Role.UNBIND, handler, handler, ends))]
        return ends


_JUMPS = ((ast.Return, _Way.RETURN), (ast.Break, _Way.BREAK), (ast.Continue, _Way.CONTINUE))


def _raised_on(ends: _Ends) -> _Ends:
    return [_End(e.source, Why.EXCEPTION, None, e.carries) for e in ends]
