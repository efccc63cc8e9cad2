"""Replace members that compiled code has in torch alone: children by name, devices of Tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.program import Function
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope, graph_state
from migrate.rules.graph_scope import Rewriting
from migrate.rules.record_fields import asked_of, members
from migrate.scene import Scene
from migrate.templates import piece

_LIST = "torch.nn.ModuleList"


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Yield both."""
    yield from _children(scene)
    yield from _devices(scene)


def _children(scene: Scene) -> Iterator[Rewriting]:
    """``self.path.conv`` of a ModuleList is ``self.path[1]``: a CellList is a tuple there.

    The constructor has to name all children, one after another.
    """
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


def _devices(scene: Scene) -> Iterator[Rewriting]:
    """``h, device = t.shape[1], t.device`` is ``h, device = t.shape[1], None``.

    Only a Tensor can be meant where no class of the project has all that the function asks of the
    variable. Where the device is asked for something, it stays.
    """
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
