"""In: a call and its new callee and arguments. Out: the parts, with the layout kept."""

from __future__ import annotations

import ast
from itertools import pairwise

from migrate.codegen.substitution import Argument, Rendering
from migrate.records.outcomes import Piece, Span
from migrate.syntax.source import Source

Parts = list["str | Piece"]


def call(source: Source, node: ast.Call, rendering: Rendering) -> tuple[str | Piece, ...]:
    """The new call with the line breaks and comments between the old arguments where they were."""
    if rendering.callee is None:
        return rendering.parts
    slots = _slots(source, node)
    opening = _opening(source, node, slots)
    order = [_slot_of(a, slots) for a in rendering.arguments]
    known = [o for o in order if o is not None]
    if known != sorted(set(known)) or not slots or opening is None:
        return rendering.parts
    parts: Parts = [*rendering.callee]
    last = None
    between = _between(source, slots)
    for argument, index in zip(rendering.arguments, order, strict=True):
        if last is None:
            head = Span(opening, slots[0][1].start)
            parts.append(_text(source, head) if index is not None or known else "(")
        elif index:
            parts.append(_text(source, Span(slots[index - 1][1].end, slots[index][1].start)))
        else:
            parts.append(between)
        parts += _shown(argument)
        last = index if index is not None else (last if last is not None else -1)
    if not rendering.arguments:
        return (*rendering.callee, "()")
    end = source.span(node).end
    tail = _text(source, Span(slots[-1][1].end, end))
    return (*parts, tail if "\n" in tail or "#" in tail else ")")


def _between(source: Source, slots: list[tuple[ast.expr, Span]]) -> str:
    """What stands between arguments: a comma, and the line break where each has its own line."""
    gaps = [_text(source, Span(a.end, b.start)) for (_, a), (_, b) in pairwise(slots)]
    if gaps and all("\n" in gap for gap in gaps):
        return ",\n" + gaps[-1].rpartition("\n")[2]
    return ", "


def _shown(argument: Argument) -> Parts:
    prefix: Parts = [f"{argument.keyword}="] if argument.keyword else []
    return [*prefix, *argument.parts]


def _slots(source: Source, node: ast.Call) -> list[tuple[ast.expr, Span]]:
    """(value, span with its keyword) of the arguments in the order of the text."""
    found = [(arg, _whole(source, arg)) for arg in node.args]
    for keyword in node.keywords:
        start = source.offset(keyword.lineno, keyword.col_offset)
        found.append((keyword.value, Span(start, _whole(source, keyword.value).end)))
    return sorted(found, key=lambda item: item[1].start)


def _whole(source: Source, node: ast.expr) -> Span:
    """The span of an argument together with parentheses of its own."""
    span = source.span(node)
    start, end = span.start, span.end
    data = source.data
    while True:
        before = start - 1
        while before >= 0 and data[before : before + 1].isspace():
            before -= 1
        after = end
        while after < len(data) and data[after : after + 1].isspace():
            after += 1
        if data[before : before + 1] != b"(" or data[after : after + 1] != b")":
            return Span(start, end)
        ahead = before - 1
        while ahead >= 0 and data[ahead : ahead + 1].isspace():
            ahead -= 1
        if ahead < 0 or data[ahead : ahead + 1] not in (b",", b"(", b"=", b"*"):
            return Span(start, end)
        start, end = before, after + 1


def _opening(source: Source, node: ast.Call, slots: list[tuple[ast.expr, Span]]) -> int | None:
    """The offset of the call's opening parenthesis."""
    start = source.span(node.func).end
    limit = slots[0][1].start if slots else source.span(node).end
    place = source.data.find(b"(", start, limit)
    return place if place >= 0 else None


def _slot_of(argument: Argument, slots: list[tuple[ast.expr, Span]]) -> int | None:
    if argument.origin is None:
        return None
    return next((i for i, (value, _) in enumerate(slots) if value is argument.origin), None)


def _text(source: Source, span: Span) -> str:
    return source.text(span)


def above(source: Source, start: int, lines: list[str]) -> tuple[str | Piece, ...]:
    """Lines of their own before the text at ``start``, indented as its line will be."""
    indent = Piece(Span(source.line_start(source.line_of(start)), start))
    parts: Parts = []
    for line in lines:
        parts += [line + source.newline, indent]
    return tuple(parts)


def removed_span(source: Source, statement: ast.stmt) -> Span:
    """What goes with a statement: its line where nothing else is on it."""
    span = source.span(statement)
    start = source.line_start(source.line_of(span.start))
    end = source.data.find(b"\n", span.end) + 1
    alone = not source.data[start : span.start].strip() and not source.data[span.end : end].strip()
    return Span(start, end) if alone and end else span
