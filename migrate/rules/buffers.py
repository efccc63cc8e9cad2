"""Copy the values of a buffer where they are kept while the buffer is bound anew.

``old = self.h; self.h = new``: in torch old stays what it was; a buffer of MindSpore keeps its
place and takes the numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.cfg import Node, evaluated
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.rules.registry import rewrites
from migrate.rules.written import written_by
from migrate.sites.buffer_gradients import BUFFER, is_buffer, registered
from migrate.sites.scene import Scene, once

SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


@rewrites()
def snapshots(scene: Scene) -> Iterator[Edit]:
    """Yield ``old = self.h.copy()`` for names that keep the value of a buffer."""
    if not registered(scene):
        return
    for node in scene.file.of(ast.Attribute):
        if is_snapshot(scene, node):
            site = scene.site(BUFFER, node)
            yield Edit(site, Outcome.CONVERTED, (Piece(site.span), ".copy()"))


@rewrites()
def unsaved(scene: Scene) -> Iterator[Edit]:
    """Yield ``set_buffer(self, "h", new)`` for ``self.h = new``: a Cell refuses such a store."""
    stores: list[ast.Assign | ast.AugAssign] = [*scene.file.of(ast.Assign)]
    stores += scene.file.of(ast.AugAssign)
    for item in stores if registered(scene, persistent=False) else ():
        target = item.target if isinstance(item, ast.AugAssign) else item.targets[0]
        several = isinstance(item, ast.Assign) and len(item.targets) > 1
        if several or not isinstance(target, ast.Attribute):
            continue
        if not is_buffer(scene, target, persistent=False):
            continue
        text, root = scene.spelling.local("helpers.set_buffer")
        held = piece(scene.source, target)
        value = piece(scene.source, item.value)
        sign = f" {SIGNS[type(item.op)]} " if isinstance(item, ast.AugAssign) else ""
        site, owner = scene.site(BUFFER, item), piece(scene.source, target.value)
        new = (held, sign, value) if sign else (value,)
        parts = (f"{text}(", owner, f', "{target.attr}", ', *new, ")")
        yield Edit(site, Outcome.HELPER, parts, needs=frozenset((root,)))


@rewrites()
def items(scene: Scene) -> Iterator[Edit]:
    """Yield ``self.done.int().item()`` for buffers of 8 bits, which have no kernel in graphs."""
    for call, _ in scene.file.calls.get("item", ()):
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(held, ast.Attribute) or held.attr not in _of_8_bits(scene):
            continue
        if is_buffer(scene, held):
            site = scene.site(BUFFER, held)
            yield Edit(site, Outcome.CONVERTED, (Piece(site.span), ".int()"))


@once
def _of_8_bits(scene: Scene) -> frozenset[str]:
    """Return the names of the buffers that are registered with such numbers."""
    found = set()
    for _, call, _ in scene.inference.program.calls.get("register_buffer", ()):
        named = {getattr(n, "attr", "") for a in call.args[1:] for n in ast.walk(a)}
        if named & {"uint8", "int8", "ByteTensor"} and isinstance(call.args[0], ast.Constant):
            found.add(str(call.args[0].value))
    return frozenset(found)


def is_snapshot(scene: Scene, node: ast.Attribute) -> bool:
    """Return whether a variable keeps a buffer that may be bound anew behind that.

    Not where one of them is changed in place, since the other would have to see it.
    """
    holder = scene.parent(node)
    if not isinstance(holder, ast.Assign) or holder.value is not node:
        return False
    if not all(isinstance(t, ast.Name) for t in holder.targets) or not is_buffer(scene, node):
        return False
    text = ast.unparse(node)
    shared = {text, *(ast.unparse(t) for t in holder.targets)}
    bound = False
    for part in evaluated_behind(scene, holder):
        for inner in ast.walk(part):
            if _changed(scene, inner) in shared:
                return False
            stores = isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
            bound |= stores and ast.unparse(inner) == text
    return bound


def _changed(scene: Scene, node: ast.AST) -> str:
    """Return the text of what a node changes in place; "" if it changes nothing."""
    changed: ast.AST | None = None
    if isinstance(node, ast.Call):
        changed = written_by(scene, node)
    elif isinstance(scene.parent(node), ast.AugAssign):
        changed = node if isinstance(getattr(node, "ctx", None), ast.Store) else None
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        changed = node
    while isinstance(changed, (ast.Subscript, ast.Call)) or (
        isinstance(changed, ast.Attribute) and changed.attr == "data"
    ):
        inner = changed.func if isinstance(changed, ast.Call) else changed
        changed = getattr(inner, "value", None)
    return ast.unparse(changed) if changed is not None else ""


def evaluated_behind(scene: Scene, item: ast.stmt) -> Iterator[ast.AST]:
    """Return what may be evaluated after a statement of its function or module."""
    function = scene.function(item)
    unit = function.node if function is not None else scene.source.tree
    graph = scene.inference.graph(unit)
    start = graph.at(item, scene.parents)
    seen: set[int] = set()
    pending: list[Node] = [start] if start is not None else []
    while pending:
        for edge in pending.pop().successors:
            if edge.target.index not in seen:
                seen.add(edge.target.index)
                pending.append(edge.target)
                yield from evaluated(edge.target)


def loses_gradient(site: Site, text: str, why: str) -> Refusal:
    return Refusal(
        site,
        "INP205",
        f"{text} takes the numbers of what is assigned to it, not its gradient, and {why}",
        "compute with a local name, and assign its detach() to the buffer",
    )
