"""Move statements with their lines to another indentation, and give each a line of its own.

``opt.zero_grad(); loss.backward(); opt.step()`` is a step like any other; what takes steps apart
moves whole lines.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator, Mapping
from itertools import pairwise

from migrate.codegen.emit import emit
from migrate.records.outcomes import Edit, Outcome, Piece, Site, Span
from migrate.syntax.lines import first_start, indent_of, whole
from migrate.syntax.source import Source, read
from migrate.training.effects import blocks
from migrate.training.staged import Staged

Parts = tuple[str | Piece, ...]


def edit(source: Source, span: Span, parts: Parts) -> Edit:
    """Return a change that a training step asks for."""
    return Edit(source.site_at("training", span), Outcome.CONVERTED, parts)


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


_WORD = b".backward("
_STEP = 4  # columns of indentation for a body that stood on the line of its header


def separated(sources: Mapping[str, Source]) -> dict[str, Staged]:
    """Return the files in which statements were put on lines of their own, by path."""
    found = {}
    for path, source in sources.items():
        changes = list(_edits(source)) if _WORD in source.data else []
        if changes:
            emitted = emit(source, changes)
            new = read(path, source.encode(emitted.data))
            found[path] = Staged(source, new, emitted, (), (), frozenset())
    return found


def _edits(source: Source) -> Iterator[Edit]:
    for block in _blocks(source.tree):
        first = block[0]
        head = source.data[source.line_start(first.lineno) : first_start(source, first)]
        before = source.data[: first_start(source, first)].rstrip()
        shared = bool(head.strip()) and before.endswith(b":")
        own = len(head) - len(head.lstrip())
        indent = head[:own].decode() + " " * _STEP if shared else indent_of(source, first)
        if shared:
            yield _break(source, len(before), first, indent)
        for one, other in pairwise(block):
            if other.lineno == one.end_lineno:
                yield _break(source, source.span(one).end, other, indent)


def _break(source: Source, start: int, item: ast.stmt, indent: str) -> Edit:
    span = Span(start, source.span(item).start)
    site = Site("statement", span, item.lineno, item.col_offset + 1)
    return Edit(site, Outcome.KEPT, (source.newline + indent,))


def _blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    """Return the blocks of statements around calls of ``backward``, but for the module itself."""
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found: dict[int, list[ast.stmt]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "backward":
            continue
        around: ast.AST | None = node
        while around is not None and not isinstance(around, ast.ClassDef | ast.Module):
            for block in blocks(around):
                found[id(block)] = block
            around = parents.get(id(around))
    return list(found.values())
