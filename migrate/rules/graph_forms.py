"""In: Python forms that graph mode refuses. Out: the faithful form that it compiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Outcome, Piece, Site
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.scene import Scene
from migrate.templates import piece

_FIXED = (ast.Name, ast.Constant, ast.UnaryOp, ast.unaryop, ast.Attribute, ast.expr_context)


def rewrites(scene: Scene) -> Iterator[Edit]:
    """``map`` and ``reversed`` in the methods of Modules, ``copy`` of a list."""
    for node in scene.file.of(ast.Call):
        if node.keywords:
            continue
        if isinstance(node.func, ast.Attribute):
            yield from _copy(scene, node, node.func)
            continue
        if not isinstance(node.func, ast.Name) or not _in_module(scene, node):
            continue
        if not any(a.kind == "builtin" for a in scene.kind(node.func)):
            continue
        if node.func.id == "map" and len(node.args) == 2 and _gone_through(scene, node):
            yield from _map(scene, node)
        elif node.func.id == "reversed" and len(node.args) == 1:
            yield from _reversed(scene, node)


def _in_module(scene: Scene, node: ast.AST) -> bool:
    owner = scene.owner(node)
    return owner is not None and scene.is_module_class(owner)


def _copy(scene: Scene, node: ast.Call, func: ast.Attribute) -> Iterator[Edit]:
    """``sizes.copy()`` of a list is ``sizes[:]``."""
    if func.attr == "copy" and not node.args and is_all(scene.kind(func.value), "list"):
        yield _edit(scene, node, (piece(scene.source, func.value, True), "[:]"))


def _map(scene: Scene, node: ast.Call) -> Iterator[Edit]:
    """``map(lambda t: f(t), items)`` is ``[f(t) for t in items]``, ``map(f, items)`` likewise.

    Graph mode's own map would go into the pairs of ``((a, b), (c, d))``.
    """
    function, items = node.args
    over = piece(scene.source, items, isinstance(items, (ast.Lambda, ast.IfExp)))
    if isinstance(function, ast.Name):
        name = next(n for n in ("item", "each", "one_item") if n not in scene.file.names)
        called = piece(scene.source, function, True)
        yield _edit(scene, node, ("[", called, f"({name}) for {name} in ", over, "]"))
        return
    if isinstance(function, ast.Call):
        yield from _map_partial(scene, node, function, over)
    if not isinstance(function, ast.Lambda):
        return
    a = function.args
    if len(a.args) != 1 or a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg or a.defaults:
        return
    body = Piece(scene.source.span(function.body))
    yield _edit(scene, node, ("[", body, f" for {a.args[0].arg} in ", over, "]"))


def _map_partial(scene: Scene, node: ast.Call, function: ast.Call, over: Piece) -> Iterator[Edit]:
    """``map(partial(f, dim=1), items)`` is ``[f(item, dim=1) for item in items]``."""
    if not graph_scope.foreign(scene, function.func, "functools.partial") or not function.args:
        return
    called, *given = function.args
    fixed = [*given, *(k.value for k in function.keywords)]
    if not all(isinstance(n, _FIXED) for f in fixed for n in ast.walk(f)):
        return  # it would be evaluated for every item
    name = next(n for n in ("item", "each", "one_item") if n not in scene.file.names)
    parts: list[str | Piece] = ["[", piece(scene.source, called, True), "("]
    for argument in given:
        parts += [piece(scene.source, argument, False), ", "]
    parts.append(name)
    for keyword in function.keywords:
        named = f", {keyword.arg}=" if keyword.arg else ", **"
        parts += [named, piece(scene.source, keyword.value, False)]
    yield _edit(scene, node, (*parts, f") for {name} in ", over, "]"))


def _gone_through(scene: Scene, node: ast.Call) -> bool:
    """Unpacked, iterated or collected: where a list does as well as an iterator."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Assign):
        return all(isinstance(t, (ast.Tuple, ast.List)) for t in parent.targets)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return parent.func.id in ("list", "tuple", "zip", "sum", "enumerate", "max", "min")
    return isinstance(parent, ast.Starred)


def _reversed(scene: Scene, node: ast.Call) -> Iterator[Edit]:
    """``reversed(self.layers)`` is ``self.layers[::-1]``."""
    items = node.args[0]
    counted = isinstance(items, ast.Call) and getattr(items.func, "id", "") == "range"
    if (counted or is_all(scene.kind(items), "Module", "list", "tuple")) and _gone_through(
        scene, node
    ):
        yield _edit(scene, node, (piece(scene.source, items, True), "[::-1]"))


def _edit(scene: Scene, node: ast.Call, parts: tuple[str | Piece, ...]) -> Edit:
    base = scene.site("graph form", node)
    site = Site(base.name, scene.source.span(node), base.line, base.column)
    return Edit(site, Outcome.CONVERTED, parts)
