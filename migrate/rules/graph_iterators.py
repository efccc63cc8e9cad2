"""In: ``next(it)`` and ``pop`` under a condition, in compiled code. Out: items, taken one by one.

Graph mode has no iterators, and of ``l.pop(0) if l else None`` it makes the list and the item. A
local iterator that is only asked for its next item is a list that gets shorter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Piece, Span
from migrate.receivers.kinds import is_all
from migrate.rules import graph_calls, graph_hoist, graph_scope
from migrate.rules.graph_scope import Rewriting, begins_line, builtin
from migrate.scene import Scene
from migrate.templates import piece

_CHANGES = ("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort")


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``f(next(it, None))`` is ``it_next, it = next_of(it, None)`` and ``f(it_next)``."""
    for node in graph_scope.nodes(scene, ast.Call, ast.Assign):
        if isinstance(node, ast.Call) and builtin(scene, node.func, "next"):
            made = _taken(scene, node)
        elif isinstance(node, ast.Call) and builtin(scene, node.func, "iter"):
            made = _listed(scene, node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp):
            made = _popped(scene, node, node.value)
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
    if not graph_calls.is_sequence(scene, node.args[0]):
        return (graph_calls.helped(scene, node.func, "begun"),)
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
    uses = [n for n in ast.walk(function.node) if isinstance(n, ast.Name) and n.id == name]
    made = [_made(scene, function.node, n) for n in uses if isinstance(n.ctx, ast.Store)]
    lists = all(m is not None and graph_calls.is_sequence(scene, m) for m in made)
    asked = [_asked(scene, n, lists) for n in uses if not isinstance(n.ctx, ast.Store)]
    return None not in made and all(asked)


def _made(scene: Scene, function: ast.AST, use: ast.Name) -> ast.expr | None:
    """The items in ``it = iter(items)``, if nobody changes them while they are gone through."""
    parent = scene.parent(use)
    value = parent.value if isinstance(parent, ast.Assign) and parent.targets == [use] else None
    if not isinstance(value, ast.Call) or not builtin(scene, value.func, "iter"):
        return None
    if len(value.args) != 1 or value.keywords or not _has_places(scene, value.args[0]):
        return None
    names = {n.id for n in ast.walk(value.args[0]) if isinstance(n, ast.Name)}
    changed = any(
        isinstance(n, ast.Attribute)
        and n.attr in _CHANGES
        and isinstance(n.value, ast.Name)
        and n.value.id in names
        for n in ast.walk(function)
    )
    return None if changed else value.args[0]


def _has_places(scene: Scene, node: ast.expr) -> bool:
    """Whether graph mode can take the first item and the others: of lists, tuples, Tensors."""
    other = any(a.kind in ("dict", "set", "Module", "str") for a in scene.kind(node))
    return not other and not isinstance(node, ast.GeneratorExp)


def _asked(scene: Scene, use: ast.Name, lists: bool) -> bool:
    """Whether the item may be taken before its statement: from lists it may in any case."""
    call = scene.parent(use)
    if not isinstance(call, ast.Call) or not builtin(scene, call.func, "next"):
        return False
    alone = call.args[0] is use and graph_hoist.first(scene, call, use.id, False)
    return alone and (lists or _nothing_runs_before(scene, call))


def _nothing_runs_before(scene: Scene, call: ast.Call) -> bool:
    """Whether its statement calls nothing before the item is asked for, but for other items."""
    child: ast.AST = call
    while not isinstance(child, ast.stmt):
        parent = scene.parent(child)
        assert parent is not None
        for other in graph_hoist.before(parent, child):
            called = [n for n in ast.walk(other) if isinstance(n, ast.Call)]
            if not all(builtin(scene, n.func, "next") for n in called):
                return False
        child = parent
    return True


def _popped(scene: Scene, node: ast.Assign, choice: ast.IfExp) -> tuple[Edit, ...]:
    """``x = l.pop(0) if l else None`` in four lines: ``if l:``, ``else:`` and what they do."""
    pops = [side for side in (choice.body, choice.orelse) if _is_pop(scene, side)]
    targets = node.targets
    if not pops or len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return ()
    source = scene.source
    span = source.span(node)
    if not begins_line(scene, node) or b"#" in source.data[span.start : span.end]:
        return ()
    indent = Piece(Span(source.line_start(node.lineno), span.start))
    step = "\t" if source.data[span.start - 1 : span.start] == b"\t" else "    "
    test, one, other = (
        piece(source, part, False) for part in (choice.test, choice.body, choice.orelse)
    )
    line, name = source.newline, targets[0].id
    first = (f":{line}", indent, f"{step}{name} = ", one, line, indent)
    second = (f"else:{line}", indent, f"{step}{name} = ", other)
    return (graph_scope.edit(scene, node, span, "if ", test, *first, *second),)


def _is_pop(scene: Scene, node: ast.expr) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "pop":
        return False
    return isinstance(func.value, ast.Name) and not is_all(scene.kind(func.value), "dict")
