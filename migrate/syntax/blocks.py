"""Move statements with their lines and comments to another indentation."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator

from migrate.records.outcomes import Piece, Span
from migrate.syntax.lines import (
    before,
    comment_start,
    first_start,
    indent_of,
    line_end,
    text_begin,
    whole,
)
from migrate.syntax.source import Source

Parts = tuple[str | Piece, ...]
_OVER_LINES = (b'"""', b"'''", b"\\\n", b"\\\r")


def dedented(source: Source, node: ast.stmt, body: list[ast.stmt]) -> Iterator[Span]:
    """Yield the white space to take away so that ``body`` is where ``node`` was."""
    begin = first_start(source, body[0])
    if before(source, begin).strip():
        return  # it is behind the colon
    column = source.span(node).start - source.line_start(node.lineno)
    first = source.line_of(begin)
    width = begin - source.line_start(first) - column
    last = max(s.end_lineno or first for s in body)
    strings = _strings(source, Span(begin, source.span(body[-1]).end))
    for line in range(first, _with_comments(source, last, column + width) + 1):
        start = source.line_start(line)
        if any(a < start < b for a, b in strings):
            continue
        blank = text_begin(source, start)
        # the innermost white space: what holds ``node`` may go as well, with its own
        for at in (start + column, start):
            if at + width <= blank:
                yield Span(at, at + width)
                break


def _strings(source: Source, span: Span) -> list[Span]:
    """Return the strings that may reach over the lines of a part of the text."""
    if not any(mark in source.data[span.start : span.end] for mark in _OVER_LINES):
        return []
    return [Span(a, b) for kind, a, b in source.tokens if kind == tokenize.STRING]


def unwrapped(source: Source, node: ast.stmt, body: list[ast.stmt]) -> list[Span]:
    """Return what goes, so that ``body``, with its comments, is where ``node`` was.

    That is the header and, where more follows, that as well.
    """
    first = first_start(source, body[0])
    span, last = source.span(node), source.span(body[-1]).end
    head = Span(span.start, comment_start(source, span.start, first))
    end = line_end(source, last)
    above = comments_left(source, node, source.line_of(head.end) + 1, source.line_of(first))
    tail = [Span(end, span.end)] if end < span.end else []
    return [head, *above, *dedented(source, node, body), *tail]


def comments_left(source: Source, node: ast.stmt, line: int, last: int) -> list[Span]:
    """Return what the lines of comments above a block lose, when it moves to where ``node`` was.

    They lie from ``line`` up to the line before ``last``, where the block begins.
    """
    column = source.span(node).start - source.line_start(node.lineno)
    begin = source.line_start(last)
    width = text_begin(source, begin) - begin - column
    starts = [source.line_start(n) for n in range(line, last)]
    return [
        Span(s + column, s + column + width)
        for s in starts
        if s + column + width <= text_begin(source, s)
    ]


def _with_comments(source: Source, last: int, column: int) -> int:
    """Return the last line of the comments that follow, indented like the block."""
    found = last
    for line in range(last + 1, source.lines + 1):
        begin = source.line_start(line)
        text = text_begin(source, begin)
        if text == line_end(source, begin):
            continue  # an empty line
        if source.data[text : text + 1] != b"#" or text - begin < column:
            break
        found = line
    return found


def moved(source: Source, item: ast.stmt, indent: str) -> Parts:
    """Return a statement's lines under another indentation, each with a newline at its end."""
    return shifted(source, whole(source, item), indent_of(source, item), indent)


def shifted(source: Source, span: Span, own: str, indent: str) -> Parts:
    """Return whole lines under another indentation, each with a newline at its end."""
    strings = [(a, b) for kind, a, b in source.tokens if kind == tokenize.STRING]
    parts: list[str | Piece] = []
    last = source.line_of(max(span.start, span.end - 1))
    for line in range(source.line_of(span.start), last + 1):
        start = max(span.start, source.line_start(line))
        end = min(span.end, line_end(source, start))
        inside = any(a < start < b for a, b in strings)
        if not inside and source.text(Span(start, end)).startswith(own):
            parts.append(indent)
            start += len(own)
        if end > start:
            parts.append(Piece(Span(start, end)))
        parts.append(source.newline)
    return tuple(parts)
