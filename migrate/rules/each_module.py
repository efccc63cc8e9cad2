"""In: ``for m in net.modules()``. Out: the loop as MindSpore writes it, over names and Cells."""

from __future__ import annotations

import ast

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Site, Span
from migrate.sites.scene import Scene

NAME = "torch.nn.Module.modules"


def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit | None:
    """``for _, m in net.cells_and_names()``; None where the call stands elsewhere."""
    call = scene.parent(node)
    if name != NAME or not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    loop = scene.parent(call)
    if not isinstance(loop, (ast.For, ast.comprehension)) or loop.iter is not call:
        return None
    if not isinstance(loop.target, ast.Name) or _reads_underscore(scene):
        return None
    source = scene.source
    target, whole = source.span(loop.target), source.span(call)
    between = Piece(Span(target.end, whole.start))
    parts = ("_, ", Piece(target), between, piece(source, node.value), ".cells_and_names()")
    base = scene.site(name, node)
    site = Site(name, Span(target.start, whole.end), base.line, base.column)
    return Edit(site, Outcome.CONVERTED, parts, NAME)


def _reads_underscore(scene: Scene) -> bool:
    return "_" in scene.file.loads
