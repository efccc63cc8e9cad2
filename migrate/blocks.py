"""Edits that leave no block of a file empty: ``pass`` takes the place of its last statement."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Sequence
from dataclasses import replace

from migrate.outcomes import Edit, Removal, Span
from migrate.scene import Scene
from migrate.source import Source


def with_pass(scene: Scene, changes: list[Edit]) -> list[Edit]:
    """Return the edits with ``pass`` where all statements of a block go.

    A removed statement that shares its line with others goes with the semicolon behind it.
    """
    gone = _Gone(scene.source, changes)
    if not gone.edits:
        return changes
    other: dict[int, Edit] = {}
    for node in scene.file.nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block:
                continue
            edits = [gone.around(item) for item in block]
            if not any(edits) or gone.around(node) is not None:
                continue
            if all(edits) and not isinstance(node, ast.Module):
                other |= _kept(scene.source, block, edits)
                continue
            for item, edit, behind in zip(block, edits, (*block[1:], None), strict=True):
                if edit is not None and _shares_line(scene.source, edit.site.span):
                    other[id(edit)] = _cut(scene.source, edit, item, behind)
    return _whole_lines(scene.source, [other.get(id(e), e) for e in changes])


def _whole_lines(source: Source, changes: list[Edit]) -> list[Edit]:
    """A header that goes up to its first statement goes with its line, if that goes as well."""
    lines = {
        e.site.span.start: e.site.span.end
        for e in changes
        if isinstance(e, Removal) and not e.parts
    }
    found = []
    for edit in changes:
        span = edit.site.span
        if not any(edit.parts or ()) and source.data[span.start : span.end].count(b"\n"):
            begin = source.line_start(source.line_of(span.end))
            before = source.line_start(source.line_of(span.start))
            blank = not source.data[before : span.start].strip()
            if blank and span.start < begin < span.end and begin in lines:
                edit = replace(edit, site=replace(edit.site, span=Span(before, begin)))
        found.append(edit)
    return found


class _Gone:
    """The removals among some edits, by place."""

    def __init__(self, source: Source, changes: Sequence[Edit]) -> None:
        self.source = source
        found = [e for e in changes if isinstance(e, Removal) and not e.parts]
        self.edits = sorted(found, key=lambda e: (e.site.span.start, -e.site.span.end))
        self.starts = [e.site.span.start for e in self.edits]

    def around(self, node: ast.AST) -> Edit | None:
        """Return the removal that takes the whole of a statement away."""
        if not isinstance(node, ast.stmt):
            return None
        span = self.source.span(node)
        for at in range(bisect.bisect_right(self.starts, span.start) - 1, -1, -1):
            if self.edits[at].site.span.end >= span.end:
                return self.edits[at]
            if self.starts[at] < self.source.line_start(node.lineno):
                return None
        return None


def _kept(source: Source, block: list[ast.stmt], edits: Sequence[Edit | None]) -> dict[int, Edit]:
    """``pass`` for the first statement of a block; what shares its line becomes ``pass`` too."""
    found = {}
    for item, edit in zip(block, edits, strict=True):
        assert edit is not None
        if item is block[0] or _shares_line(source, edit.site.span):
            site = replace(edit.site, span=source.span(item))
            found[id(edit)] = replace(edit, site=site, parts=("pass",))
    return found


def _cut(source: Source, edit: Edit, item: ast.stmt, behind: ast.stmt | None) -> Edit:
    """The removal of a statement that shares its line, with the semicolon behind it."""
    span = source.span(item)
    follows = source.span(behind).start if behind is not None else 0
    if follows and not source.data[span.end : follows].strip(b"; \t"):
        return replace(edit, site=replace(edit.site, span=Span(span.start, follows)))
    return replace(edit, site=replace(edit.site, span=span), parts=("pass",))


def _shares_line(source: Source, span: Span) -> bool:
    return source.data[span.end - 1 : span.end] != b"\n" and span.end < len(source.data)
