"""In: a file and its new text. Out: edits that bring back the comments the new text has lost."""

from __future__ import annotations

import ast
import bisect
import tokenize
from collections import Counter
from collections.abc import Sequence

from migrate.layout import above
from migrate.outcomes import Edit, Outcome, Site, Span
from migrate.scene import Scene
from migrate.source import Source


def rescued(scene: Scene, data: bytes, shown: Sequence[Span] = ()) -> list[Edit]:
    """One edit for every comment of the source that ``data``, the new text, has fewer of.

    ``shown`` are the spans of statements that stand as comments, with their own comments.
    """
    lost = [
        (start, end)
        for start, end in _lost(scene.source, data)
        if not any(s.start <= start and end <= s.end for s in shown)
    ]
    statements = _statements(scene) if lost else []
    return [_rescued(scene, statements, start, end) for start, end in lost]


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


def _statements(scene: Scene) -> list[tuple[int, int]]:
    """Start and end of every statement, by their start."""
    whole = [_whole(scene.source, n) for n in scene.file.nodes if isinstance(n, ast.stmt)]
    return sorted((span.start, span.end) for span in whole)


def _rescued(scene: Scene, statements: list[tuple[int, int]], start: int, end: int) -> Edit:
    """A lost comment, on a line of its own above its statement."""
    source = scene.source
    place = source.line_of(start)
    before = bisect.bisect_right(statements, (start, len(source.data)))
    inner = (
        first
        for first, last in reversed(statements[:before])
        if start < last or source.line_of(last) == place
    )
    line = source.line_start(source.line_of(next(inner, start)))
    while source.data[line : line + 1] in (b" ", b"\t"):
        line += 1
    parts = above(source, line, [source.text(Span(start, end))])
    return Edit(Site("comment", Span(line, line), source.line_of(line), 1), Outcome.KEPT, parts)
