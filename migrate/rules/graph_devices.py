"""In: ``t.device`` of what nobody knows, in compiled code. Out: None, as for every Tensor.

Graph mode has no such attribute, and there is one device. Only a Tensor can be meant where no class
of the project has all that the function asks of the variable. Where the device is asked for
something, it stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.program import Function
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting
from migrate.rules.record_fields import asked_of, members
from migrate.scene import Scene


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``h, device = t.shape[1], t.device`` is ``h, device = t.shape[1], None``."""
    for node in graph_scope.nodes(scene, ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr == "device":
            function = scene.function(node)
            if function is not None and _is_tensors(scene, function, node):
                span = scene.source.span(node)
                yield Rewriting(node, (graph_scope.edit(scene, node, span, "None"),))


def _is_tensors(scene: Scene, function: Function, node: ast.Attribute) -> bool:
    if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name):
        return False
    if not is_all(scene.kind(node.value), "unknown") or not _is_passed(scene, function, node):
        return False
    asked = asked_of(scene.inference, function, node)
    known = scene.table.torch.names
    if not all(f"torch.Tensor.{name}" in known for name in asked):
        return False
    return not any(asked <= names for names in members(scene.inference).values())


def _is_passed(scene: Scene, function: Function, node: ast.Attribute) -> bool:
    """Whether it is given to a variable that is only passed on."""
    name = _given_to(scene, node)
    if not name:
        return False
    used = (n for n in function.nodes if isinstance(n, ast.Name) and n.id == name)
    read = [n for n in used if isinstance(n.ctx, ast.Load)]
    return all(_passes(scene.parent(n), n) for n in read)


def _passes(parent: ast.AST | None, name: ast.Name) -> bool:
    called = isinstance(parent, ast.Call) and parent.func is not name
    return called or isinstance(parent, ast.keyword)


def _given_to(scene: Scene, node: ast.Attribute) -> str:
    """``device`` in ``device = t.device`` and ``*shape, device = *t.shape, t.device``."""
    parent = scene.parent(node)
    values = parent.elts if isinstance(parent, ast.Tuple) else [node]
    statement = scene.parent(parent) if isinstance(parent, ast.Tuple) else parent
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return ""
    target = statement.targets[0]
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    behind = len(values) - next(i for i, v in enumerate(values) if v is node)
    starred = any(isinstance(v, ast.Starred) for v in (*values[-behind:], *targets[-behind:]))
    if starred or behind > len(targets):
        return ""
    return getattr(targets[-behind], "id", "")
