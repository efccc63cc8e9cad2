"""In: a torch decorator that leaves its function as it is. Out: the function without it."""

from __future__ import annotations

import ast

from migrate.outcomes import Edit, Outcome, Site, Span
from migrate.scene import Scene
from migrate.table import Row

PASSES_ON = "helpers.script"
# contexts that decorate with and without parentheses
BARE = ("torch.no_grad", "torch.inference_mode", "torch.enable_grad",
        "torch.autograd.no_grad", "torch.autograd.inference_mode",
        "torch.autograd.enable_grad")  # fmt: skip


def decide(scene: Scene, site: Site, node: ast.expr, name: str) -> Edit | None:
    """``@torch.jit.script``, ``@torch.compile(...)`` go; None where the place is no decorator."""
    if not is_decorator(scene, node):
        return None
    bare = name in BARE and not isinstance(node, ast.Call)
    row = next((row for row in scene.table.rows(name) if bare or _returns_it(row)), None)
    return dropped(scene, site, node, row) if row is not None else None


def is_decorator(scene: Scene, node: ast.AST) -> bool:
    parent = scene.parent(node)
    return node in getattr(parent, "decorator_list", ())


def _returns_it(row: Row) -> bool:
    """The row says that the target is the first argument itself."""
    first = row.signatures[0].params[:1] if row.signatures else ()
    return row.ref == PASSES_ON or any(row.to == p.name for p in first)


def dropped(scene: Scene, site: Site, node: ast.expr, row: Row) -> Edit:
    """The lines of the decorator are gone."""
    source = scene.source
    span = source.span(node)
    start = source.line_start(source.line_of(span.start))
    end = source.data.find(b"\n", span.end)
    place = Site(site.name, Span(start, end + 1), site.line, site.column)
    return Edit(place, Outcome.CONVERTED, (), row.key, note=row.note)
