"""In: ``x[mask, :]``. Out: ``x[mask]``, the same, which PyNative mode of MindSpore computes.

A slice behind a mask over several axes is taken for one of the mask's axes there: the result has
another shape, or only other numbers where the axes are equally long. One that stands between a mask
and a number (``x[mask, :, 0]``) stays, in an index of its own: ``x[mask][:, :, 0]``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.types.kinds import is_all
from migrate.records.outcomes import Edit, Outcome, Site, Span
from migrate.sites.scene import Scene
from migrate.sites.selections import is_mask, may_choose


def cuts(scene: Scene) -> Iterator[Edit]:
    """The full slices at the end of an index that holds what may be a mask go."""
    for node in scene.file.of(ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        kept = len(items)
        while kept and _is_full(items[kept - 1]):
            kept -= 1
        read = isinstance(node.ctx, ast.Load)
        if not kept or not read or not is_all(scene.kind(node.value), "Tensor"):
            continue
        if kept > 2 and isinstance(items[1], ast.Slice) and is_mask(scene, items[0]):
            yield from _edit(scene, node, _comma(scene, items[0], items[1]), "][:,")
        chosen = (i for i in items[:kept] if not isinstance(i, ast.Slice))
        if kept < len(items) and any(may_choose(scene, i) for i in chosen):
            yield from _edit(scene, node, _comma_on(scene, items[kept - 1], items[-1]), "")


def _edit(scene: Scene, node: ast.Subscript, span: Span | None, text: str) -> Iterator[Edit]:
    if span is not None:
        site = scene.site("torch.Tensor.__getitem__", node)
        place = Site(site.name, span, site.line, site.column)
        yield Edit(place, Outcome.CONVERTED, (text,))


def _is_full(item: ast.expr) -> bool:
    """``:`` and ``...``, behind which nothing is chosen."""
    if isinstance(item, ast.Constant):
        return item.value is ...
    return isinstance(item, ast.Slice) and not (item.lower or item.upper or item.step)


def _comma(scene: Scene, before: ast.expr, after: ast.expr) -> Span | None:
    """The comma between two items; None where a comment stands there."""
    start, stop = scene.source.span(before).end, scene.source.span(after).start
    between = scene.source.data[start:stop]
    place = start + between.find(b",")
    return None if b"#" in between or place < start else Span(place, place + 1)


def _comma_on(scene: Scene, last: ast.expr, end: ast.expr) -> Span | None:
    """From the comma behind the last one that stays; None where a comment stands between."""
    start, stop = scene.source.span(last).end, scene.source.span(end).end
    between = scene.source.data[start:stop]
    if b"#" in between:
        return None
    return Span(start + between.index(b","), stop)
