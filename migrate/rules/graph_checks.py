"""In: ``all``, ``any`` and ``^`` in compiled code. Out: lengths and comparisons: graph mode's own.

Graph mode calls Python's ``all`` and ``any`` for constants only, but counts the elements of a
comprehension while it compiles; of bools it knows ``!=`` and no ``^``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Piece, Span
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting, builtin
from migrate.scene import Scene
from migrate.templates import piece

_LOOSE = (ast.BoolOp, ast.IfExp, ast.Lambda)
_LATE = (ast.NamedExpr, ast.Await, ast.Yield)


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``all(f(d) for d in sizes)`` is ``len([d for d in sizes if not f(d)]) == 0``."""
    for node in graph_scope.nodes(scene, ast.Call, ast.BinOp):
        made: Edit | None = None
        if isinstance(node, ast.Call):
            made = _counted(scene, node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            made = _different(scene, node)
        if made is not None:
            yield Rewriting(node, (made,))


def _counted(scene: Scene, node: ast.Call) -> Edit | None:
    every = builtin(scene, node.func, "all")
    if not every and not builtin(scene, node.func, "any"):
        return None
    over = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if not isinstance(over, (ast.GeneratorExp, ast.ListComp)) or len(over.generators) > 1:
        return None
    loop, test = over.generators[0], over.elt
    names = [n for n in ast.walk(loop.target) if isinstance(n, ast.Name)]
    if loop.is_async or not names or any(isinstance(n, _LATE) for n in ast.walk(over)):
        return None
    if any(a.kind == "Tensor" for a in scene.kind(test)):
        return None  # its truth is not known while the graph is compiled
    span = _clause(scene, loop)
    if span is None:
        return None
    asked = Piece(scene.source.span(test), isinstance(test, _LOOSE))
    opens, closes = ("(", ")") if graph_scope.taken_hold(scene, node) else ("", "")
    head = f"{opens}len([{names[0].id} for "
    answer = "== 0" if every else "> 0"
    parts = (head, Piece(span), f" if {'not ' if every else ''}", asked, f"]) {answer}{closes}")
    return graph_scope.edit(scene, node, scene.source.span(node), *parts)


def _clause(scene: Scene, loop: ast.comprehension) -> Span | None:
    """``d in sizes if d``: of a whole clause, with its parentheses, the text after its ``for``."""
    source = scene.source
    last = loop.ifs[-1] if loop.ifs else loop.iter
    span = Span(source.span(loop.target).start, source.span(last).end)
    text = source.data[span.start : span.end].decode()
    try:
        ast.parse(f"[0 for {text}]")
    except SyntaxError:  # a parenthesis ends outside of it
        return None
    return None if "#" in text else span


def _different(scene: Scene, node: ast.BinOp) -> Edit | None:
    """``a ^ b`` of bools is ``a != b``."""
    if not is_all(scene.kind(node.left), "bool") or not is_all(scene.kind(node.right), "bool"):
        return None
    tight = graph_scope.taken_hold(scene, node) and not _enclosed(scene, node)
    opens, closes = ("(", ")") if tight else ("", "")
    left, right = (piece(scene.source, side, True) for side in (node.left, node.right))
    span = scene.source.span(node)
    return graph_scope.edit(scene, node, span, opens, left, " != ", right, closes)


def stays(scene: Scene, node: ast.Call) -> bool:
    """``all`` or ``any`` of what is computed, and has no other form: of Tensors above all."""
    known = builtin(scene, node.func, "all") or builtin(scene, node.func, "any")
    made = (ast.GeneratorExp, ast.ListComp, ast.List, ast.Tuple)
    function = scene.function(node)
    if not known or function is None or not isinstance(node.args[0], made):
        return False
    fixed = {a.arg for a in function.parameters[:1] if function.owner is not None}
    names = {n.id for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
    return bool(names & function.locals - fixed)


def _enclosed(scene: Scene, node: ast.expr) -> bool:
    span, data = scene.source.span(node), scene.source.data
    return data[: span.start].rstrip()[-1:] == b"(" and data[span.end :].lstrip()[:1] == b")"
