"""In: ``next(it, None)`` in compiled code. Out: the first item of a list that gets shorter.

Graph mode has no iterators. A local one that is only asked for its next item is as good as a list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Piece, Span
from migrate.rules import graph_calls, graph_hoist, graph_scope
from migrate.rules.graph_scope import Rewriting, builtin
from migrate.scene import Scene
from migrate.substitution import piece

_CHANGES = ("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort")


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``f(next(it, None))`` is ``it_next, it = next_of(it, None)`` and ``f(it_next)``."""
    for node in graph_scope.nodes(scene):
        if isinstance(node, ast.Call) and builtin(scene, node.func, "next"):
            made = _taken(scene, node)
        elif isinstance(node, ast.Call) and builtin(scene, node.func, "iter"):
            made = _listed(scene, node)
        else:
            continue
        if made:
            yield Rewriting(node, made)


def _listed(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """``it = iter(items)`` is ``it = items``, where each use of ``it`` takes the next item."""
    statement = scene.parent(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ()
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not _only_steps(scene, node, target.id):
        return ()
    inside = piece(scene.source, node.args[0], False)
    return (graph_scope.edit(scene, node, scene.source.span(node), inside),)


def _taken(scene: Scene, node: ast.Call) -> tuple[Edit, ...]:
    """The next item, in a statement before: it is asked for in any case, and once."""
    name = node.args[0] if node.args else None
    if not isinstance(name, ast.Name) or len(node.args) > 2 or node.keywords:
        return ()
    quiet = all(isinstance(a, (ast.Constant, ast.Name)) for a in node.args[1:])
    if not quiet or not _only_steps(scene, node, name.id):
        return ()
    source = scene.source
    start = source.span(scene.statement(node)).start
    indent = Piece(Span(source.line_start(scene.statement(node).lineno), start))
    taken = f"{name.id}_next"
    helper, root = scene.spelling.local("helpers.next_of")
    given = ", ".join(source.text_of(a) for a in node.args)
    head = f"{taken}, {name.id} = {helper}({given}){source.newline}"
    above = graph_scope.edit(scene, node, Span(start, start), head, indent)
    above = replace(above, outcome=Outcome.HELPER, needs=frozenset((root,)))
    return (above, graph_scope.edit(scene, node, source.span(node), taken))


def _only_steps(scene: Scene, node: ast.Call, name: str) -> bool:
    """Whether a local name stands for iterators of lists only, each use in a ``next`` that can
    be moved before its statement."""
    function = scene.function(node)
    if function is None or name not in function.locals or f"{name}_next" in scene.file.names:
        return False
    if name in {p.arg for p in function.parameters}:
        return False
    return all(
        _made(scene, function.node, use) if isinstance(use.ctx, ast.Store) else _asked(scene, use)
        for use in ast.walk(function.node)
        if isinstance(use, ast.Name) and use.id == name
    )


def _made(scene: Scene, function: ast.AST, use: ast.Name) -> bool:
    """``it = iter(items)`` of a sequence that nobody changes while it is gone through."""
    parent = scene.parent(use)
    value = parent.value if isinstance(parent, ast.Assign) and parent.targets == [use] else None
    if not isinstance(value, ast.Call) or not builtin(scene, value.func, "iter"):
        return False
    if len(value.args) != 1 or not graph_calls.is_sequence(scene, value.args[0]):
        return False
    names = {n.id for n in ast.walk(value.args[0]) if isinstance(n, ast.Name)}
    return not any(
        isinstance(n, ast.Attribute)
        and n.attr in _CHANGES
        and isinstance(n.value, ast.Name)
        and n.value.id in names
        for n in ast.walk(function)
    )


def _asked(scene: Scene, use: ast.Name) -> bool:
    call = scene.parent(use)
    if not isinstance(call, ast.Call) or not builtin(scene, call.func, "next"):
        return False
    return call.args[0] is use and graph_hoist.first(scene, call, use.id, False)
