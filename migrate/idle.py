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
from migrate.rules.graph_state import answers
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
        names = _names(scene, node.targets[0])
        if not names or names != [_root(item, names) for item in _items(node.value)]:
            continue
        span = scene.source.span(node.value)
        at = bisect.bisect_left(starts, span.start)
        if at < len(starts) and starts[at] < span.end:
            value = within(scene.source, order, starts, span).decode("utf-8")
            if _same(node.targets[0], value) and _bound_before(scene, node.targets[0], node):
                yield node


def _bound_before(scene: Scene, target: ast.expr, node: ast.Assign) -> bool:
    """Return whether the unit itself has the names: ``x = x`` in a class takes x from outside."""
    names = [i.id for i in _items(target) if isinstance(i, ast.Name)]
    owner = scene.parent(node)
    return not isinstance(owner, ast.ClassDef) or all(scene.facts.is_bound(n, node) for n in names)


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _names(scene: Scene, target: ast.expr) -> list[str]:
    """The variables and members bound; none where more may happen than the text says."""
    items = _items(target)
    plain = [i for i in items if isinstance(i, ast.Name) or _is_member(scene, i)]
    return [ast.unparse(i) for i in plain] if len(plain) == len(items) else []


def _is_member(scene: Scene, target: ast.expr) -> bool:
    """``self.eps`` of a Module without code that runs where it is bound."""
    owner, function = scene.owner(target), scene.function(target)
    if not isinstance(target, ast.Attribute) or owner is None or function is None:
        return False
    own = function.parameters[0].arg if function.parameters else ""
    mine = isinstance(target.value, ast.Name) and target.value.id == own
    return mine and scene.is_module_class(owner) and not answers(owner, target.attr)


def _root(node: ast.expr, names: list[str]) -> str:
    """The variable or member that a chain of calls and attributes starts with."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in names:
            return ast.unparse(node)
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _same(target: ast.expr, value: str) -> bool:
    try:
        read = ast.parse(value.strip(), mode="eval").body
    except SyntaxError:
        return False
    return ast.dump(read) == ast.dump(ast.parse(ast.unparse(target), mode="eval").body)


def _removal(scene: Scene, node: ast.Assign) -> Edit:
    base = scene.site("idle", node)
    site = Site(base.name, removed_span(scene.source, node), base.line, base.column)
    return Removal(site, Outcome.CONVERTED, ())
