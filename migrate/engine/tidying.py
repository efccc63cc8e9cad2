"""Tidy the result of edits: lost comments are restored, idle assignments removed.

``data, target = data.to(device), target.to(device)`` becomes ``data, target = data, target``: the
statement is removed.
"""

from __future__ import annotations

import ast
import bisect
from collections.abc import Sequence

from migrate.records.outcomes import Edit, Outcome, Span
from migrate.rules.graph.state import answers
from migrate.sites.scene import Scene
from migrate.syntax.lines import comment_lines, first_start, text_begin


def may_be_idle(scene: Scene) -> frozenset[Span]:
    """Return the assignments that do nothing if their values become what they are bound to."""
    found = []
    for node in scene.file.of(ast.Assign):
        if len(node.targets) != 1:
            continue
        names = _names(scene, node.targets[0])
        if not names or names != [_root(item, names) for item in _items(node.value)]:
            continue
        if _bound_before(scene, node.targets[0], node):
            found.append(scene.source.span(node))
    return frozenset(found)


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


def rescued(
    scene: Scene, lost: Sequence[Span], changes: Sequence[Edit], shown: Sequence[Span] = ()
) -> list[Edit]:
    """Return one edit for every comment that is lost from what ``changes`` replace.

    ``shown`` are the spans of statements that stand as comments, with their own comments.
    """
    inside = [c for c in lost if not c.lies_in(shown)]
    statements = _statements(scene) if inside else []
    starts = {start for start, _ in statements}
    runs = [e.site.span for e in changes if inside and e.parts and e.site.span.start in starts]
    return [_rescued(scene, statements, runs, start, end) for start, end in inside]


def _statements(scene: Scene) -> list[tuple[int, int]]:
    """Start and end of every statement, by their start."""
    source, nodes = scene.source, (n for n in scene.file.nodes if isinstance(n, ast.stmt))
    return sorted((first_start(source, n), source.span(n).end) for n in nodes)


def _rescued(
    scene: Scene, statements: list[tuple[int, int]], runs: list[Span], start: int, end: int
) -> Edit:
    """A lost comment, on a line of its own above its statement, or the run that it stood in."""
    source = scene.source
    place = source.line_of(start)
    before = bisect.bisect_right(statements, (start, len(source.data)))
    inner = (
        first
        for first, last in reversed(statements[:before])
        if start < last or source.line_of(last) == place
    )
    above = next(inner, start)
    around = [run.start for run in runs if above < run.start <= start < run.end]
    line = text_begin(source, min(around, default=above))
    parts = comment_lines(source, line, [source.text(Span(start, end))])
    return Edit(source.site_at("comment", Span(line, line)), Outcome.KEPT, parts)
