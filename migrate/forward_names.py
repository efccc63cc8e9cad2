"""In: a file. Out: the places where a Module's ``forward`` gets its name, or is asked for by text.

``forward = other`` in a class and ``setattr(Net, "forward", f)`` bind it as ``def forward`` does; a
Cell that keeps the old name runs what its base class has under ``construct``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.receivers.kinds import is_all, without_none
from migrate.scene import Scene

NAME = "forward"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BY_TEXT = frozenset({"setattr", "getattr", "hasattr", "delattr"})


def in_class(scene: Scene, owner: ast.ClassDef) -> list[ast.AST]:
    """Definitions in a Module's class, under conditions as well, and the names that are read."""
    if not scene.is_module_class(scene.file.classes[id(owner)]):
        return []
    return [n for statement in owner.body for n in _at_class_level(statement) if _is_forward(n)]


def _is_forward(node: ast.AST) -> bool:
    return NAME in (getattr(node, "id", ""), getattr(node, "name", ""))


def _at_class_level(node: ast.AST) -> Iterator[ast.AST]:
    """What is run when the class is made: bodies of functions are not."""
    yield node
    if isinstance(node, (ast.ClassDef, ast.Lambda)):
        return
    parts: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, FUNCTIONS):
        given = [default for default in node.args.kw_defaults if default is not None]
        parts = [*node.decorator_list, *node.args.defaults, *given]
    for part in parts:
        yield from _at_class_level(part)


def by_text(scene: Scene, call: ast.Call) -> list[ast.Constant]:
    """``"forward"`` in ``setattr(net, "forward", f)``, where net is a Module or its class."""
    if getattr(call.func, "id", "") not in BY_TEXT or len(call.args) < 2:
        return []
    subject, text = call.args[:2]
    if not isinstance(text, ast.Constant) or text.value != NAME:
        return []
    kind = scene.kind(subject)
    classes = all(
        atom.kind == "class" and scene.inference.is_module(atom.name) for atom in without_none(kind)
    )
    return [text] if is_all(kind, "Module") or (kind and classes) else []
