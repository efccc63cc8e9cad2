"""In: ``:=`` and ``pop()`` in the middle of a compiled expression. Out: a statement before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Piece, Span
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting, begins_line
from migrate.scene import Scene

_STATEMENTS = (ast.If, ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
_QUIET = (ast.Name, ast.Constant, ast.Attribute, ast.Tuple, ast.List, ast.expr_context)
_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp)


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``if (n := f(x)) > 1:`` is ``n = f(x)`` and ``if n > 1:``."""
    for node in graph_scope.nodes(scene, ast.NamedExpr, ast.Call):
        if isinstance(node, ast.NamedExpr):
            if not _holds_named(node.value) and first(scene, node, node.target.id, True):
                yield Rewriting(node, _hoisted(scene, node, node.value, node.target.id))
        elif isinstance(node, ast.Call) and _pops(scene, node):
            assert isinstance(node.func, ast.Attribute)
            assert isinstance(node.func.value, ast.Name)
            name = node.func.value.id
            if first(scene, node, name, False):
                yield Rewriting(node, _hoisted(scene, node, node, _free(scene, node, name)))


def _holds_named(value: ast.expr) -> bool:
    return any(isinstance(n, ast.NamedExpr) for n in ast.walk(value))


def _pops(scene: Scene, node: ast.Call) -> bool:
    """The pop of a local list inside an expression: graph mode takes it as a statement alone."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr != "pop" or node.keywords:
        return False
    function = scene.function(node)
    if not isinstance(func.value, ast.Name) or not is_all(scene.kind(func.value), "list"):
        return False
    if isinstance(scene.parent(node), (ast.Assign, ast.Expr)) or function is None:
        return False
    given = {p.arg for p in function.parameters}
    return func.value.id in function.locals - given and all(
        isinstance(a, (ast.Constant, ast.UnaryOp)) for a in node.args
    )


def first(scene: Scene, node: ast.expr, name: str, strict: bool) -> bool:
    """Whether it may be evaluated before everything else in its statement.

    It must be evaluated in any case and once; nothing before it may read or bind the name, and,
    where ``strict``, nothing before it may do more than read variables.
    """
    child: ast.AST = node
    parent = scene.parent(node)
    while parent is not None and not isinstance(child, ast.stmt):
        if isinstance(parent, _LATER) or (_conditional(parent, child)):
            return False
        for other in before(parent, child):
            inside = list(ast.walk(other))
            if any(isinstance(n, ast.Name) and n.id == name for n in inside):
                return False
            if strict and not all(isinstance(n, _QUIET) for n in inside):
                return False
        child, parent = parent, scene.parent(parent)
    if not isinstance(child, _STATEMENTS):
        return False
    again = [n for n in ast.walk(child) if isinstance(n, ast.Name) and n.id == name]
    return begins_line(scene, child) and (strict or len(again) == 1)


def _conditional(parent: ast.AST, child: ast.AST) -> bool:
    """Whether the parent evaluates the child under a condition only."""
    if isinstance(parent, ast.BoolOp):
        return parent.values[0] is not child
    if isinstance(parent, ast.Compare):
        return any(c is child for c in parent.comparators[1:])
    return isinstance(parent, ast.If) and parent.test is not child


def before(parent: ast.AST, child: ast.AST) -> list[ast.AST]:
    """What the parent evaluates before the child."""
    if isinstance(parent, ast.Assign):
        return []
    if isinstance(parent, ast.Dict):
        return [n for n in (*parent.keys, *parent.values) if n is not None and n is not child]
    found = []
    for node in ast.iter_child_nodes(parent):
        if node is child:
            break
        if not isinstance(node, (ast.operator, ast.cmpop, ast.boolop, ast.unaryop)):
            found.append(node)
    return found


def _hoisted(scene: Scene, node: ast.expr, value: ast.expr, name: str) -> tuple[Edit, ...]:
    statement, source = scene.statement(node), scene.source
    start = source.span(statement).start
    # a piece of the text, so that it moves with a block that loses its header
    indent = Piece(Span(source.line_start(statement.lineno), start))
    broken = b"\n" in source.data[source.span(value).start : source.span(value).end]
    inside: str | Piece = Piece(source.span(value), broken and not isinstance(value, ast.Call))
    if value is node:  # the place of a pop is taken by its name
        inside = source.text_of(node)
    above = graph_scope.edit(
        scene, node, Span(start, start), f"{name} = ", inside, source.newline, indent
    )
    if isinstance(scene.parent(node), ast.Expr):
        return (graph_scope.edit(scene, node, _bare(scene, node), f"{name} = ", inside),)
    return (above, graph_scope.edit(scene, node, _bare(scene, node), name))


def _bare(scene: Scene, node: ast.expr) -> Span:
    """The span with the parentheses that an assignment expression asks for."""
    span, data = scene.source.span(node), scene.source.data
    if isinstance(scene.parent(node), ast.Call) or not isinstance(node, ast.NamedExpr):
        return span
    if data[span.start - 1 : span.start] == b"(" and data[span.end : span.end + 1] == b")":
        before = data[: span.start - 1]
        # ``if(n := f())`` needs a space where its parenthesis was
        if not before[-1:].isalnum():
            return Span(span.start - 1, span.end + 1)
    return span


def _free(scene: Scene, node: ast.Call, name: str) -> str:
    """``skips.pop()`` is ``skips_last``, ``skips.pop(0)`` is ``skips_first``."""
    first = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
    wish = f"{name}_{'first' if first else 'last'}"
    return next(n for n in (wish, f"{wish}_", f"{wish}__") if n not in scene.file.names)
