"""In: a slice of a Tensor with a step. Out: a selection whose gradient MindSpore can compute.

The CPU kernel of a strided slice's gradient fails unless the slice with the step takes the first
axis alone or the last one alone; those stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.types.kinds import Kind, is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Site
from migrate.sites.scene import Scene

Parts = tuple["str | Piece", ...]
SETS_UP = ("__init", "_init", "init", "reset", "load", "_load")


def slices(scene: Scene) -> Iterator[Edit]:
    """``x[:, ::2]`` is ``strided(x, 1, step=2)`` where a gradient may pass."""
    for node in scene.file.of(ast.Subscript):
        index = node.slice
        items = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        if not any(_has_step(i) for i in items) or _has_kernel(items):
            continue
        if not _is_read(scene, node):
            continue
        if is_all(scene.kind(node.value), "Tensor"):
            axes = _axes(scene, items)
            if axes:
                yield _edit(scene, node, items, axes)


def _is_read(scene: Scene, node: ast.Subscript) -> bool:
    """Read in code that computes: neither assigned to, nor part of what a constructor sets up."""
    parent, function = scene.parent(node), scene.function(node)
    if not isinstance(node.ctx, ast.Load) or function is None:
        return False
    if isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load):
        return False
    in_place = isinstance(parent, ast.Attribute) and parent.attr.endswith("_")
    return not in_place and not function.name.lower().startswith(SETS_UP)


def _is_constant(node: ast.expr | None, *values: object) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in values)


def _has_step(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and not _is_constant(node.step, None, 1)


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step)


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _has_kernel(items: list[ast.expr]) -> bool:
    """``x[::2]`` and ``x[..., ::2]``."""
    return _has_step(items[0] if len(items) == 1 else items[-1]) and (
        len(items) == 1 or (len(items) == 2 and _is_dots(items[0]))
    )


def _axes(scene: Scene, items: list[ast.expr]) -> dict[int, int]:
    """The place in the index of each slice with a step -> its axis; {} where one is not known."""
    dots = next((i for i, item in enumerate(items) if _is_dots(item)), len(items))
    found: dict[int, int] = {}
    for place, item in enumerate(items):
        if not _has_step(item) or not isinstance(item, ast.Slice):
            continue
        bounds = [b for b in (item.lower, item.upper, item.step) if b is not None]
        beside = items[:place] if place < dots else items[place + 1 :]
        if any(is_all(scene.kind(b), "Tensor") for b in bounds):
            return {}
        taken = [_axes_taken(scene.kind(i), i) for i in beside]
        if None in taken:
            return {}
        count = sum(t or 0 for t in taken)
        found[place] = count if place < dots else -1 - count
    return found


def _axes_taken(kind: Kind, node: ast.expr) -> int | None:
    """How many axes one part of an index takes; None when its kind does not tell."""
    if isinstance(node, ast.Slice):
        return 1
    if isinstance(node, ast.Constant) and node.value is None:
        return 0
    return 1 if is_all(kind, "int") and all(a.kind == "int" for a in kind) else None


def _edit(scene: Scene, node: ast.Subscript, items: list[ast.expr], axes: dict[int, int]) -> Edit:
    text, root = scene.spelling.local("helpers.strided")
    parts: Parts = (piece(scene.source, node.value),)
    for place, axis in axes.items():
        parts = (f"{text}(", *parts, f", {axis}", *_bounds(scene, items[place]), ")")
    rest: list[Parts] = [
        (":",) if i in axes else (piece(scene.source, item),) for i, item in enumerate(items)
    ]
    if any(i not in axes and not _is_whole(x) and not _is_dots(x) for i, x in enumerate(items)):
        inner = [p for number, part in enumerate(rest) for p in ((", ",) if number else ()) + part]
        parts = (*parts, "[", *inner, "]")
    base = scene.site("torch.Tensor.__getitem__", node)
    site = Site(base.name, scene.source.span(node), base.line, base.column)
    return Edit(site, Outcome.HELPER, parts, needs=frozenset((root,)))


def _bounds(scene: Scene, item: ast.expr) -> Parts:
    assert isinstance(item, ast.Slice)
    parts: Parts = ()
    for name, bound, usual in (
        ("start", item.lower, (None, 0)),
        ("stop", item.upper, (None,)),
        ("step", item.step, (None, 1)),
    ):
        if bound is not None and not _is_constant(bound, *usual):
            parts = (*parts, f", {name}=", piece(scene.source, bound))
    return parts
