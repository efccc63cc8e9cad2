"""In: ``self.path.conv`` of a ModuleList with named children, in compiled code. Out: ``path[1]``.

Graph mode takes a CellList for a tuple of Cells: they have places there, and no names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.rules import graph_scope, graph_state
from migrate.rules.graph_scope import Rewriting
from migrate.scene import Scene
from migrate.templates import piece

_LIST = "torch.nn.ModuleList"


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Where the constructor names all children, one after another."""
    for node in graph_scope.nodes(scene, ast.Attribute):
        held = node.value if isinstance(node, ast.Attribute) else None
        if not isinstance(node, ast.Attribute) or not isinstance(held, ast.Attribute):
            continue
        if not isinstance(node.ctx, ast.Load) or set(scene.module_classes(held)) != {_LIST}:
            continue
        names = _named(scene, held)
        if names.count(node.attr) == 1:
            parts = (piece(scene.source, held, True), f"[{names.index(node.attr)}]")
            made = graph_scope.edit(scene, node, scene.source.span(node), *parts)
            yield Rewriting(node, (made,))


def _named(scene: Scene, held: ast.Attribute) -> list[str]:
    """The names of the children in their order; nothing, where something else may add some."""
    owner = scene.owner(held)
    start = owner.methods.get("__init__") if owner is not None else None
    if start is None or not isinstance(start.node.body, list) or not start.parameters:
        return []
    member = f"{start.parameters[0].arg}.{held.attr}"
    names: list[str] = []
    made = 0
    for statement in start.node.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == member:
            empty = isinstance(statement.value, ast.Call) and not statement.value.args
            made += 1 if empty and not names else 2
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            names += _added(statement.value, member)
    uses = [
        n
        for n in ast.walk(start.owner.node if start.owner else start.node)
        if isinstance(n, ast.Attribute) and ast.unparse(n) == member
    ]
    if not graph_state.known_only(scene, start, held.attr, uses, lambda scene, node: False):
        return []
    asked = [n for n in uses if isinstance(scene.parent(n), ast.Attribute)]
    adding = [n for n in asked if getattr(scene.parent(n), "attr", "") not in names]
    plain = made == 1 and len(adding) == len(names) and len(uses) == len(asked) + 1
    return names if plain else []


def _added(call: ast.Call, member: str) -> list[str]:
    """``self.path.add_module("conv", ...)``: its name."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("add_module", "register_module"):
        return []
    if ast.unparse(func.value) != member or len(call.args) != 2:
        return []
    name = call.args[0]
    return [name.value] if isinstance(name, ast.Constant) and isinstance(name.value, str) else []
