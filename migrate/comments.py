"""In: a file and its new text. Out: edits that bring back the comments the new text has lost."""

from __future__ import annotations

import ast
import tokenize
from collections import Counter

from migrate.layout import above
from migrate.outcomes import Edit, Outcome, Site, Span
from migrate.scene import Scene
from migrate.source import Source


def rescued(scene: Scene, data: bytes) -> list[Edit]:
    """One edit for every comment of the source that ``data``, the new text, has fewer of."""
    return [_rescued(scene, start, end) for start, end in _lost(scene.source, data)]


def _lost(source: Source, data: bytes) -> list[tuple[int, int]]:
    """The comments of the source that the new text has fewer of."""
    new = Source("", data, source.tree, _starts=_starts(data))
    have = Counter(data[a:b].strip() for kind, a, b in new.tokens if kind == tokenize.COMMENT)
    lost = []
    for kind, start, end in source.tokens:
        if kind == tokenize.COMMENT:
            text = source.data[start:end].strip()
            if have[text]:
                have[text] -= 1
            else:
                lost.append((start, end))
    return lost


def _starts(data: bytes) -> tuple[int, ...]:
    found, position = [0], data.find(b"\n")
    while position >= 0:
        found.append(position + 1)
        position = data.find(b"\n", position + 1)
    return tuple(found)


def _whole(source: Source, node: ast.stmt) -> Span:
    """The span of a statement with its decorators."""
    span = source.span(node)
    starts = [source.span(d).start for d in getattr(node, "decorator_list", ())]
    return Span(min([span.start, *starts]), span.end)


def _rescued(scene: Scene, start: int, end: int) -> Edit:
    """A lost comment, on a line of its own above its statement."""
    source = scene.source
    holder: ast.stmt | None = None
    for node in ast.walk(source.tree):
        if isinstance(node, ast.stmt):
            span = _whole(source, node)
            beside = source.line_of(span.end) == source.line_of(start)
            inner = holder is None or span.start >= _whole(source, holder).start
            if inner and (span.start <= start < span.end or beside):
                holder = node
    at = _whole(source, holder).start if holder is not None else start
    line = source.line_start(source.line_of(at))
    while source.data[line : line + 1] in (b" ", b"\t"):
        line += 1
    parts = above(source, line, [source.text(Span(start, end))])
    return Edit(Site("comment", Span(line, line), source.line_of(line), 1), Outcome.KEPT, parts)
