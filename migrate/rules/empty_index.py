"""In: stores at places of which there may be none. Out: a test before them that there are some.

Such a store changes nothing in torch. MindSpore refuses it: ``x[places] = value`` with no places
that were found, and ``x[h[0]:h[1], w[0]:w[1]] = value`` with nothing between ``h[0]`` and ``h[1]``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece
from migrate.sites.scene import Scene
from migrate.sites.selections import is_found, is_selection
from migrate.syntax.lines import before, begins_line, ends_line, step_of


def guards(scene: Scene) -> Iterator[Edit]:
    """``if places.size:`` above the statement, which is indented by it."""
    stores: list[ast.Assign | ast.AugAssign] = []
    stores += scene.file.of(ast.Assign)
    stores += scene.file.of(ast.AugAssign)
    for node in stores:
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        target = targets[0]
        if len(targets) != 1 or not isinstance(target, ast.Subscript) or not _alone(scene, node):
            continue
        if not is_all(scene.kind(target.value), "Tensor"):
            continue
        if _is_searched(scene, target.slice):
            assert isinstance(target.slice, ast.Name)
            yield _guard(scene, target, target.slice.id)
        elif _has_bounds_of_data(target.slice):
            yield _guard(scene, target, piece(scene.source, target))


def _is_searched(scene: Scene, places: ast.expr) -> bool:
    return (
        isinstance(places, ast.Name)
        and is_all(scene.kind(places), "Tensor")
        and (is_found(scene, places) or is_selection(scene, places))
    )


def _has_bounds_of_data(index: ast.expr) -> bool:
    """Whether an axis before the last is cut as pairs say that a loop goes through."""
    axes = index.elts[:-1] if isinstance(index, ast.Tuple) else []
    cuts = [one for one in axes if isinstance(one, ast.Slice)]
    return any(_is_item(one.lower) and _is_item(one.upper) for one in cuts)


def _is_item(bound: ast.expr | None) -> bool:
    """``h[0]``"""
    item = bound if isinstance(bound, ast.Subscript) else None
    return (
        item is not None
        and isinstance(item.value, ast.Name)
        and isinstance(item.slice, ast.Constant)
    )


def _alone(scene: Scene, node: ast.stmt) -> bool:
    """Whether no other statement shares its lines."""
    return begins_line(scene.source, node) and ends_line(scene.source, node)


def _guard(scene: Scene, target: ast.Subscript, places: str | Piece) -> Edit:
    """It takes the target along, so that a comment on the statement comes before both."""
    source = scene.source
    span = source.span(target)
    indent = before(source, span.start)
    site = scene.site("empty index", target)
    return Edit(
        site,
        Outcome.CONVERTED,
        ("if ", places, f".size:{source.newline}{indent}{step_of(indent)}", Piece(span)),
    )
