"""In: ``x[mask, :]``. Out: ``x[mask]``, the same, which PyNative mode of MindSpore computes.

A full slice behind a mask over several axes is taken for one of the mask's axes there: the result
has another shape, or only other numbers where the axes are equally long.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Outcome, Site, Span
from migrate.receivers.kinds import is_all
from migrate.scene import Scene
from migrate.selections import may_choose


def cuts(scene: Scene) -> Iterator[Edit]:
    """The full slices at the end of an index that holds what may be a mask go."""
    for node in scene.file.of(ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        kept = len(items)
        while kept and _is_full(items[kept - 1]):
            kept -= 1
        if not kept or kept == len(items) or not isinstance(node.ctx, ast.Load):
            continue
        masked = any(not isinstance(i, ast.Slice) and may_choose(scene, i) for i in items[:kept])
        span = _comma_on(scene, items[kept - 1], items[-1])
        if masked and span is not None and is_all(scene.kind(node.value), "Tensor"):
            site = scene.site("torch.Tensor.__getitem__", node)
            place = Site(site.name, span, site.line, site.column)
            yield Edit(place, Outcome.CONVERTED, ("",))


def _is_full(item: ast.expr) -> bool:
    """``:`` and ``...``, behind which nothing is chosen."""
    if isinstance(item, ast.Constant):
        return item.value is ...
    return isinstance(item, ast.Slice) and not (item.lower or item.upper or item.step)


def _comma_on(scene: Scene, last: ast.expr, end: ast.expr) -> Span | None:
    """From the comma behind the last one that stays; None where a comment stands between."""
    start, stop = scene.source.span(last).end, scene.source.span(end).end
    between = scene.source.data[start:stop]
    if b"#" in between:
        return None
    return Span(start + between.index(b","), stop)
