"""Put ``name = None`` before compiled statements that bind a name on one way only.

Python minds a name without a value only when it is read. Graph mode refuses the function: it looks
at both ways, whatever the condition says, and forgets what the body of a loop binds. It decides by
itself only what it can read off ``self``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from migrate.analysis.program import Function
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Part
from migrate.rules.graph import scope
from migrate.rules.graph.scope import Rewriting, Text
from migrate.sites.scene import Scene
from migrate.syntax.lines import begins_line, ends_line
from migrate.syntax.trees import all_parameters, children, loaded_names, within

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_OWN = (ast.Attribute, ast.Constant, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.unaryop, ast.boolop,
        ast.cmpop, ast.expr_context)  # fmt: skip
Bound = frozenset[str]


def unbound(scene: Scene) -> Iterator[Rewriting]:
    """``y = None`` above ``if has: y = f(x)``, where ``if has: g(y)`` follows."""
    for function in scope.compiled_here(scene):
        body = function.node.body
        if not isinstance(body, list) or _catches(function):
            continue
        given = {a.arg for a in all_parameters(function.node.args)}
        walk = _Walk(frozenset(function.locals - given - function.globals))
        walk.block(body, frozenset())
        for statement in body if walk.missing else ():
            names = [n for n in _bindings(statement) if walk.missing.pop(n.id, False)]
            if names and begins_line(scene.source, statement):
                text = scene.source.newline.join(f"{n.id} = None" for n in names)
                made = scope.part(scene, statement, Part.BEFORE, text)
                yield Rewriting(names[0], (made,))


def raising(scene: Scene, statement: ast.stmt, text: str) -> tuple[Text, ...]:
    """Return ``text``, which raises in place of a statement, so that graph mode compiles the rest.

    Under a condition that does not hold it is never reached. Still graph mode asks for a value for
    each name that is read below it, and drops a plain ``raise`` that statements follow.
    """
    function, block = scene.function(statement), scene.parent(statement)
    if function is None or not begins_line(scene.source, statement):
        return (text,)
    after = scope.statements_after(scene, statement)
    inner: ast.AST = statement
    while isinstance(around := scene.parent(inner), (ast.With, ast.AsyncWith)):
        inner = around  # it may be taken away
        after += scope.statements_after(scene, around)
    known = function.key in scope.compiled(scene.inference) and block is not function.node
    read = {n for s in after for n in loaded_names(s)} if known else set()
    # a nested function may not say nonlocal for a name that nothing binds
    read |= {n for s in ast.walk(function.node) if isinstance(s, ast.Nonlocal) for n in s.names}
    names = _lost(function.node, statement, read)
    lines = [f"{n} = None" for n in names]
    lines += ["if True:", f"    {text}"] if after else [text]
    return (scene.source.newline.join(lines),)


def _lost(function: ast.AST, statement: ast.stmt, read: set[str]) -> list[str]:
    """The names that only the statement gives a value, of those that are read."""
    names = {n.id: n for n in _bindings(statement)}
    for other in ast.walk(function):
        if isinstance(other, ast.arg):
            names.pop(other.arg, None)
        elif isinstance(other, ast.Name) and other.id in names:
            stored, first = isinstance(other.ctx, ast.Store), names[other.id]
            if stored and (other.lineno, other.col_offset) < (first.lineno, first.col_offset):
                del names[other.id]
    return [n for n in names if n in read]


@dataclass
class _Walk:
    """Which names a statement may find without a value. ``own``: what holds under ``if self.x``."""

    names: Bound
    missing: dict[str, bool] = field(default_factory=dict)
    own: dict[str, Bound] = field(default_factory=dict)

    def block(self, body: Iterable[ast.stmt], bound: Bound) -> Bound | None:
        """What has a value after it; None where it never comes to its end."""
        for statement in body:
            after = self.statement(statement, bound)
            if after is None:
                return None
            bound = after
        return bound

    def statement(self, node: ast.stmt, bound: Bound) -> Bound | None:
        if isinstance(node, ast.If):
            return self._if(node, bound)
        if isinstance(node, (ast.For, ast.While)):
            self.read(node.iter if isinstance(node, ast.For) else node.test, bound)
            targets = _stored(node.target) if isinstance(node, ast.For) else frozenset()
            self.block(node.body, bound | targets)
            return self.block(node.orelse, bound)
        if isinstance(node, ast.With):
            for item in node.items:
                self.read(item, bound)
                bound |= _stored(item)
            return self.block(node.body, bound)
        if isinstance(node, ast.Try) or hasattr(node, "cases"):
            return self._several(node, bound)
        if isinstance(node, _SCOPES):
            return bound | {getattr(node, "name", "")}
        self.read(node, bound)
        return None if isinstance(node, _LEAVES) else bound | _stored(node)

    def _if(self, node: ast.If, bound: Bound) -> Bound | None:
        self.read(node.test, bound)
        bound |= _stored(node.test)
        known = ast.dump(node.test) if _is_own(node.test) else ""
        first = self.block(node.body, bound | self.own.get(known, frozenset()))
        second = self.block(node.orelse, bound)
        if known and first is not None:
            self.own[known] = self.own.get(known, frozenset()) | first
        if first is None or second is None:
            return second if first is None else first
        return first & second

    def _several(self, node: ast.stmt, bound: Bound) -> Bound | None:
        """``try`` and ``match``: any part may run, and may end anywhere."""
        for part in ast.iter_child_nodes(node):
            body = getattr(part, "body", None)
            if isinstance(part, ast.stmt):
                self.block([part], bound | _stored(node))
            elif isinstance(body, list):
                self.block(body, bound | _stored(node))
        return bound | _stored(node)

    def read(self, node: ast.AST, bound: Bound) -> Bound:
        """Note the names that it reads and that have no value yet; give what ``:=`` binds in it."""
        if isinstance(node, _SCOPES):
            return frozenset(n.target.id for n in within(node) if isinstance(n, ast.NamedExpr))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._used(node.target.id, bound)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._used(node.id, bound)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            bound |= _stored(node)
        named = {node.target.id} if isinstance(node, ast.NamedExpr) else set()
        for part in children(node):
            new = self.read(part, bound)
            if new:
                named |= new
                bound |= new
        return frozenset(named)

    def _used(self, name: str, bound: Bound) -> None:
        if name in self.names and name not in bound:
            self.missing[name] = True


def _stored(node: ast.AST) -> Bound:
    names: set[str] = set()
    for part in within(node):
        if isinstance(part, ast.Name):
            names |= {part.id} if isinstance(part.ctx, ast.Store) else set()
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).partition(".")[0] for a in part.names}
        else:  # of handlers, patterns and definitions
            names |= {str(getattr(part, field, None)) for field in ("name", "rest")}
    return frozenset(names)


def _bindings(node: ast.AST) -> list[ast.Name]:
    """The first binding of each name in it, in the order of the text."""
    found: dict[str, ast.Name] = {}
    for name in within(node):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
            found.setdefault(name.id, name)
    return sorted(found.values(), key=lambda n: (n.lineno, n.col_offset))


def _is_own(test: ast.expr) -> bool:
    """Whether graph mode decides the test before anything else: members of ``self``, constants."""
    return all(
        isinstance(n, _OWN) or (isinstance(n, ast.Name) and n.id == "self") for n in ast.walk(test)
    )


def _catches(function: Function) -> bool:
    """Whether the function wants to know that a name has no value."""
    types = (h.type for h in function.of(ast.ExceptHandler) if isinstance(h, ast.ExceptHandler))
    names = {getattr(n, "id", "") for t in types if t is not None for n in within(t)}
    return bool(names & {"NameError", "UnboundLocalError"})


def own_error(scene: Scene, node: ast.Raise) -> Edit | None:
    """``raise ShapeError(x)``: a variable holds the error.

    Graph mode knows the errors of Python alone by their names, and refuses any other name of a
    class, also where no run gets to.
    """
    made, function = node.exc, scene.function(node)
    error = made.func if isinstance(made, ast.Call) else made
    atoms = scene.kind(error) if error is not None else frozenset()
    foreign = {a.kind for a in atoms} <= {"class", "foreign"} and isinstance(made, ast.Call)
    alone = begins_line(scene.source, node) and ends_line(scene.source, node)
    if made is None or function is None or not atoms or not alone:
        return None
    if not foreign and any(a.kind != "class" for a in atoms):
        return None
    source, name = scene.source, scope.free_local(scene, function, "error")
    cause = (" from ", piece(source, node.cause)) if node.cause is not None else ()
    bound = (f"{name} = ", piece(source, made))
    return scope.instead(scene, node, bound, (f"raise {name}", *cause))
