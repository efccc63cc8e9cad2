"""In: a file and its edits. Out: the edits, without assignments that would bind a name to itself.

``data, target = data.to(device), target.to(device)`` comes to ``data, target = data, target``: the
statement goes.
"""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator

from migrate.emit import in_order, within
from migrate.layout import removed_span
from migrate.outcomes import Edit, Outcome, Removal, Site
from migrate.scene import Scene


def without_idle(scene: Scene, changes: list[Edit]) -> list[Edit]:
    """The edits, and a removal for every statement that they make idle."""
    order = in_order(changes)
    starts = [e.site.span.start for e in order]
    return changes + [_removal(scene, node) for node in _idle(scene, order, starts)]


def _idle(scene: Scene, order: list[Edit], starts: list[int]) -> Iterator[ast.Assign]:
    for node in scene.file.of(ast.Assign):
        if len(node.targets) != 1:
            continue
        names = _names(node.targets[0])
        if not names or names != [_root(item) for item in _items(node.value)]:
            continue
        span = scene.source.span(node.value)
        at = bisect.bisect_left(starts, span.start)
        if at < len(starts) and starts[at] < span.end:
            value = within(scene.source, order, starts, span).decode("utf-8")
            if _same(node.targets[0], value):
                yield node


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _names(target: ast.expr) -> list[str]:
    """The names bound; none where an attribute or an item is: that may do more than it says."""
    items = _items(target)
    names = [item.id for item in items if isinstance(item, ast.Name)]
    return names if len(names) == len(items) else []


def _root(node: ast.expr) -> str:
    """The name a chain of calls and attributes starts with."""
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            node = node.value
        else:
            return node.id if isinstance(node, ast.Name) else ""


def _same(target: ast.expr, value: str) -> bool:
    try:
        read = ast.parse(value.strip(), mode="eval").body
    except SyntaxError:
        return False
    return bool(_names(read)) and ast.unparse(read) == ast.unparse(target)


def _removal(scene: Scene, node: ast.Assign) -> Edit:
    base = scene.site("idle", node)
    site = Site(base.name, removed_span(scene.source, node), base.line, base.column)
    return Removal(site, Outcome.CONVERTED, ())
