"""In: statements of a source. Out: their lines as pieces, moved to another indentation."""

from __future__ import annotations

import ast
import tokenize

from migrate.outcomes import Piece, Span
from migrate.source import Source

Parts = tuple[str | Piece, ...]


def indent_of(source: Source, item: ast.stmt) -> str:
    """The white space in front of a statement."""
    start = source.line_start(item.lineno)
    return source.data[start : first_byte(source, item)].decode()


def first_byte(source: Source, item: ast.stmt) -> int:
    """Where a statement begins, its decorators included."""
    decorators = getattr(item, "decorator_list", ())
    return min([source.span(item).start, *(source.span(d).start - 1 for d in decorators)])


def whole(source: Source, item: ast.stmt) -> Span:
    """The lines of a statement, with a comment at its end, without the last newline."""
    start = source.line_start(source.line_of(first_byte(source, item)))
    end = source.data.find(b"\n", source.span(item).end)
    end = len(source.data) if end < 0 else end
    if source.data[source.span(item).end : end].lstrip()[:1] not in (b"", b"#", b"\r"):
        end = source.span(item).end
    return Span(start, end)


def shares_line(source: Source, item: ast.stmt) -> bool:
    """Whether other code stands on the lines of a statement (``a = 1; b = 2``)."""
    span = source.span(item)
    before = source.data[source.line_start(item.lineno) : first_byte(source, item)]
    end = source.data.find(b"\n", span.end)
    after = source.data[span.end : len(source.data) if end < 0 else end].strip()
    return bool(before.strip()) or after[:1] not in (b"", b"#")


def moved(source: Source, item: ast.stmt, indent: str) -> Parts:
    """A statement's lines under another indentation, each with a newline at its end."""
    return shifted(source, whole(source, item), indent_of(source, item), indent)


def shifted(source: Source, span: Span, before: str, indent: str) -> Parts:
    """Whole lines under another indentation, each with a newline at its end."""
    own = before.encode()
    strings = [(a, b) for kind, a, b in source.tokens if kind == tokenize.STRING]
    parts: list[str | Piece] = []
    start = span.start
    while start < span.end:
        end = source.data.find(b"\n", start, span.end)
        end = span.end if end < 0 else end
        inside = any(a < start < b for a, b in strings)
        if not inside and source.data.startswith(own, start):
            parts.append(indent)
            start += len(own)
        if end > start:
            parts.append(Piece(Span(start, end)))
        parts.append("\n")
        start = end + 1
    return tuple(parts)


def comments(source: Source, start: int, end: int) -> list[str]:
    """The comments between two offsets."""
    return [
        source.text(Span(a, b))
        for kind, a, b in source.tokens
        if kind == tokenize.COMMENT and start <= a < end
    ]


def above(source: Source, item: ast.stmt) -> int:
    """The start of the comment lines right above a statement, or of the statement's line."""
    line = source.line_of(first_byte(source, item))
    indent = indent_of(source, item).encode()
    while line > 1:
        start, end = source.line_start(line - 1), source.line_start(line)
        if not source.data[start:end].startswith(indent + b"#"):
            break
        line -= 1
    return source.line_start(line)
