"""In: ``x.data`` that is kept. Out: a copy of it where ``x.data`` is bound anew behind that.

``backup[name] = p.data; p.data = shadow[name]``: in torch p gets other memory, and what was kept
stays as it was. Here the weight keeps its memory and gets other values, so a copy is kept.
"""

from __future__ import annotations

import ast

from migrate.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.scene import Scene


def decide(scene: Scene, site: Site, node: ast.Attribute) -> Edit | Refusal | None:
    """The copy; a refusal where nobody sees when it is bound anew; None where nothing is kept."""
    holder = scene.parent(node)
    if not isinstance(holder, ast.Assign) or holder.value is not node:
        return None
    name = ast.unparse(node)
    if any(_binds(item, name) for item in _behind(scene, holder)):
        parts = (Piece(scene.source.span(node)), ".copy()")
        place = Site(site.name, scene.source.span(node), site.line, site.column)
        return Edit(place, Outcome.CONVERTED, parts, "torch.Tensor.data")
    kept = any(isinstance(t, (ast.Subscript, ast.Attribute)) for t in holder.targets)
    if not kept or not any(_stores_data(n) for n in scene.file.nodes):
        return None
    return Refusal(
        site,
        "INP206",
        f"{name} is kept, and somewhere .data is bound anew: a weight keeps its memory here",
        f"keep {name}.clone(), if later updates of it are not to be seen",
        keep=True,
    )


def _behind(scene: Scene, item: ast.stmt) -> list[ast.stmt]:
    """The statements behind one in its block."""
    around = scene.parent(item)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(around, field, None)
        if isinstance(block, list) and item in block:
            return block[block.index(item) + 1 :]
    return []


def _binds(item: ast.stmt, name: str) -> bool:
    return any(_stores_data(n) and ast.unparse(n) == name for n in ast.walk(item))


def _stores_data(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Store)
    )
