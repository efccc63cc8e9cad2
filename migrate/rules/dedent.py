"""In: a compound statement whose header goes. Out: the white space that goes with it."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator

from migrate.records.outcomes import Span
from migrate.sites.scene import Scene
from migrate.syntax.lines import first_start, line_end

_OVER_LINES = (b'"""', b"'''", b"\\\n", b"\\\r")


def dedented(scene: Scene, node: ast.stmt, body: list[ast.stmt]) -> Iterator[Span]:
    """The indentation to take away, so that ``body`` stands where ``node`` stood."""
    source = scene.source
    head = source.line_of(source.span(node).start)
    begin = first_start(scene.source, body[0])
    first = source.line_of(begin)
    if source.data[source.line_start(first) : begin].strip():
        return  # it stands behind the colon
    column = source.span(node).start - source.line_start(head)
    width = begin - source.line_start(first) - column
    held = source.data[begin : source.span(body[-1]).end]
    # without one of these no string goes over lines, and nothing has to be read by tokens
    tokens = source.tokens if any(mark in held for mark in _OVER_LINES) else ()
    strings = [(a, b) for kind, a, b in tokens if kind == tokenize.STRING]
    last = max(s.end_lineno or first for s in body)
    for line in range(first, _with_comments(scene, last, column + width) + 1):
        start = source.line_start(line)
        if any(a < start < b for a, b in strings):
            continue
        # the innermost white space: what holds ``node`` may go as well, with its own
        for at in (start + column, start):
            lead = source.data[start : at + width]
            if not lead.strip() and b"\n" not in lead:
                yield Span(at, at + width)
                break


def unwrapped(scene: Scene, node: ast.stmt, body: list[ast.stmt]) -> list[Span]:
    """What goes, so that ``body``, with its comments, stands where ``node`` stood.

    That is the header and, where more follows, that as well.
    """
    source, first = scene.source, first_start(scene.source, body[0])
    whole, last = source.span(node), source.span(body[-1]).end
    comment = source.data.find(b"#", whole.start, first)
    head = Span(whole.start, comment if comment >= 0 else first)
    end = line_end(source, last)
    above = comments_left(scene, node, source.line_of(head.end) + 1, source.line_of(first))
    tail = [Span(end, whole.end)] if end < whole.end else []
    return [head, *above, *dedented(scene, node, body), *tail]


def comments_left(scene: Scene, node: ast.stmt, line: int, last: int) -> list[Span]:
    """What the lines of comments above a block lose, when it moves to the place of ``node``.

    They stand from ``line`` up to the line before ``last``, where the block begins.
    """
    source = scene.source
    column = source.span(node).start - source.line_start(node.lineno)
    begin = source.line_start(last)
    text = source.data[begin:].split(b"\n", 1)[0]
    width = len(text) - len(text.lstrip()) - column
    starts = [source.line_start(n) + column for n in range(line, last)]
    return [Span(s, s + width) for s in starts if not source.data[s : s + width].strip(b" \t")]


def _with_comments(scene: Scene, last: int, column: int) -> int:
    """The last line of the comments that follow, indented like the block."""
    data = scene.source.data
    line = found = last
    while True:
        line += 1
        try:
            start = scene.source.line_start(line)
        except IndexError:
            return found
        end = data.find(b"\n", start)
        text = data[start : end if end >= 0 else len(data)]
        if not text.strip():
            if end < 0:
                return found
            continue
        if not text.lstrip().startswith(b"#") or len(text) - len(text.lstrip()) < column:
            return found
        found = line
