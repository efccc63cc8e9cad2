"""Find where statements lie on the lines of a file: beginning, end, indentation, comments."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Sequence

from migrate.records.outcomes import Piece, Span
from migrate.syntax.source import Source


def first_start(source: Source, node: ast.stmt) -> int:
    """Return where a statement begins, its decorators included."""
    decorators = getattr(node, "decorator_list", ())
    return min([source.span(node).start, *(source.span(d).start - 1 for d in decorators)])


def statements(source: Source, body: Sequence[ast.stmt]) -> Piece:
    """Return statements of a block as a piece of the source."""
    return Piece(Span(first_start(source, body[0]), source.span(body[-1]).end))


def line_begin(source: Source, offset: int) -> int:
    """Return where the line of an offset begins."""
    return source.line_start(source.line_of(offset))


def text_begin(source: Source, offset: int) -> int:
    """Return where the text of the line of an offset begins, behind its indentation."""
    begin = line_begin(source, offset)
    while source.data[begin : begin + 1] in (b" ", b"\t", b"\f"):
        begin += 1
    return begin


def line_end(source: Source, offset: int) -> int:
    """Return where the line of an offset ends, a comment included, its line end not."""
    end = source.data.find(b"\n", offset)
    end = len(source.data) if end < 0 else end
    return end - 1 if end > offset and source.data[end - 1 : end] == b"\r" else end


def next_line(source: Source, offset: int) -> int:
    """Return where the line behind an offset begins."""
    end = source.data.find(b"\n", offset)
    return len(source.data) if end < 0 else end + 1


def before(source: Source, offset: int) -> str:
    """Return the text between the beginning of a line and an offset."""
    return source.text(Span(line_begin(source, offset), offset))


def behind(source: Source, offset: int) -> str:
    """Return the text between an offset and the end of its line, without blanks around it."""
    return source.text(Span(offset, line_end(source, offset))).strip()


def indent_of(source: Source, node: ast.stmt) -> str:
    """Return the text before a statement: its indentation where it begins its line."""
    return before(source, first_start(source, node))


def step_of(indent: str) -> str:
    """Return by how much a block below a line is indented."""
    return "\t" if indent.endswith("\t") else "    "


def is_elif(source: Source, node: ast.AST) -> bool:
    """Return whether a statement is written as ``elif``."""
    if not isinstance(node, ast.If):
        return False
    start = source.span(node).start
    return source.data[start : start + 4] == b"elif"


def begins_line(source: Source, node: ast.stmt) -> bool:
    """Return whether something can be put before a statement: it begins its line, no elif."""
    return not before(source, source.span(node).start).strip() and not is_elif(source, node)


def ends_line(source: Source, node: ast.AST) -> bool:
    """Return whether nothing but a comment follows on the last line of a node."""
    return behind(source, source.span(node).end)[:1] in ("", "#")


def shares_line(source: Source, node: ast.stmt) -> bool:
    """Return whether other code lies on the lines of a statement (``a = 1; b = 2``)."""
    return bool(indent_of(source, node).strip()) or not ends_line(source, node)


def whole(source: Source, node: ast.stmt) -> Span:
    """Return the lines of a statement, with a comment at its end, without the last newline."""
    end = source.span(node).end
    last = next_line(source, end)
    last -= source.data[last - 1 : last] == b"\n"
    start = line_begin(source, first_start(source, node))
    return Span(start, last if ends_line(source, node) else end)


def comments(source: Source, start: int, end: int) -> list[str]:
    """Return the comments between two offsets."""
    if not may_hold_comment(source, start, end):
        return []
    return [
        source.text(Span(a, b))
        for kind, a, b in source.tokens
        if kind == tokenize.COMMENT and start <= a < end
    ]


def blank_lines(source: Source, offset: int) -> int:
    """Return how many empty lines lie right above the line of an offset; -1 at the very top."""
    text = source.data[: line_begin(source, offset)]
    return text[len(text.rstrip()) :].count(b"\n") - 1


def behind_text(source: Source, offset: int) -> int:
    """Return where the empty lines begin that lie right above the line of an offset."""
    begin = line_begin(source, offset)
    return min(begin, next_line(source, max(0, len(source.data[:begin].rstrip()) - 1)))


def opens_block(source: Source, offset: int) -> bool:
    """Return whether only a header or a docstring is above the line of an offset in its block."""
    above = source.data[: line_begin(source, offset)].rstrip()
    return above.endswith((b":", b'"""'))


def may_hold_comment(source: Source, start: int, end: int) -> bool:
    """Return whether a part of the text may hold a comment."""
    return b"#" in source.data[start:end]


def above(source: Source, node: ast.stmt) -> int:
    """Return where the comment lines right above a statement begin, or its own line."""
    line = source.line_of(first_start(source, node))
    mark = indent_of(source, node).encode() + b"#"
    while line > 1 and source.data.startswith(mark, source.line_start(line - 1)):
        line -= 1
    return source.line_start(line)


def comment_lines(source: Source, start: int, lines: list[str]) -> tuple[str | Piece, ...]:
    """Lines of their own before the text at ``start``, indented as its line will be."""
    indent = Piece(Span(line_begin(source, start), start))
    parts: list[str | Piece] = []
    for line in lines:
        parts += [line + source.newline, indent]
    return tuple(parts)


def moved(source: Source, item: ast.stmt, indent: str) -> tuple[str | Piece, ...]:
    """Return a statement's lines under another indentation, with a newline at the end."""
    span = Span(first_start(source, item), source.span(item).end)
    return (indent, Piece(span), source.newline)


def shifted(source: Source, span: Span, indent: str) -> tuple[str | Piece, ...]:
    """Return the lines of statements under another indentation, with a newline at the end."""
    text = source.data[span.start : span.end]
    start, end = (
        span.start + len(text) - len(text.lstrip()),
        span.end - len(text) + len(text.rstrip()),
    )
    return (indent, Piece(Span(start, end)), source.newline)
