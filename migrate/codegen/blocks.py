"""Find the statements of a file by place, in the blocks of its LibCST tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrate.records.outcomes import Edit, Span
from migrate.syntax.concrete import Concrete

CLAUSE = -2  # in the place of the index of a statement: elif, else, except, finally


@dataclass(frozen=True)
class Run:
    """Statements of a block, by index; ``above``: from which of the lines above the first on.

    ``tail``: the comment behind the last is a part of it. ``without``: a field that is left out.
    ``of``: the edit that puts them somewhere, and the ``span`` that it names.
    """

    block: Any
    first: int
    last: int
    above: int | None = None
    tail: bool = False
    without: str = ""
    of: Edit | None = None
    span: Span = field(default_factory=lambda: Span(0, 0))

    def holds(self, edit: Edit, rank: Mapping[int, int]) -> bool:
        """Return whether an edit of all of them is applied where they are put."""
        (start, end), of = edit.site.span, self.of
        if of is not None and edit.site.span == of.site.span and rank[id(edit)] <= rank[id(of)]:
            return False  # the same edit, or one around it
        return edit is not of and self.span.start <= start and end <= self.span.end


@dataclass
class Blocks:
    """Where the statements and comment lines of a file begin and end."""

    tree: Concrete
    # offset of a statement or line -> block, index of the statement, index of the line above it
    starts: dict[int, tuple[Any, int, int | None]] = field(default_factory=dict)
    lines: dict[int, tuple[Any, int, int | None]] = field(default_factory=dict)
    ends: dict[int, list[tuple[Any, int, bool]]] = field(default_factory=dict)
    indents: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._walk(self.tree.module)
        block: Any = self.tree.module
        end = len(self.tree.source.data)
        self.lines.setdefault(end, (block, len(block.body), len(block.footer)))

    def _walk(self, block: Any) -> None:
        source, tree = self.tree.source, self.tree
        if isinstance(block, cst.Module):
            for k, line in enumerate(block.header):
                self._line(line, block, -1, k)
        for index, statement in enumerate(block.body):
            for k, line in enumerate(statement.leading_lines):
                self._line(line, block, index, k)
            start = self._start(statement)
            begin = source.line_start(source.line_of(start))
            self.starts[start] = self.lines[begin] = (block, index, None)
            self.indents.setdefault(id(block), source.text(Span(begin, start)))
            end = tree.span(statement).end
            self.ends.setdefault(end, []).append((block, index, False))
            comment = trailing(statement).comment
            if comment is not None:
                self.ends.setdefault(tree.span(comment).end, []).append((block, index, True))
            for below in _below(statement):
                self._walk(below)
            for handler in getattr(statement, "handlers", ()):
                self.starts[tree.span(handler).start] = (handler, CLAUSE, None)
            clause = getattr(statement, "orelse", None)
            while isinstance(clause, cst.If):
                self.starts[tree.span(clause).start] = (clause, CLAUSE, None)
                clause = clause.orelse
            for last in (clause, getattr(statement, "finalbody", None)):
                if last is not None:
                    self.starts[tree.span(last).start] = (last, CLAUSE, None)
        for k, line in enumerate(block.footer):
            self._line(line, block, len(block.body), k)

    def _line(self, line: cst.EmptyLine, block: Any, index: int, k: int) -> None:
        begin = self.tree.span(line).start
        self.lines.setdefault(begin, (block, index, k))
        if line.comment is not None:
            self.starts.setdefault(self.tree.span(line.comment).start, (block, index, k))

    def _start(self, statement: Any) -> int:
        decorators = getattr(statement, "decorators", ())
        return self.tree.span(decorators[0] if decorators else statement).start

    def run(self, span: Span) -> Run | None:
        """Return the statements of one block that lie exactly in a span."""
        found = self.starts.get(span.start)
        for block, last, tail in self.ends.get(span.end, ()):
            if found is not None and found[0] is block and found[1] <= last and found[1] >= 0:
                return Run(block, found[1], last, found[2], tail)
        return None


def _below(statement: Any) -> Iterator[Any]:
    """Yield the indented blocks of a statement."""
    body = getattr(statement, "body", None)
    if isinstance(body, cst.IndentedBlock):
        yield body
    for name in ("orelse", "finalbody"):
        other = getattr(statement, name, None)
        if other is not None:
            yield from _below(other)
    for other in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield from _below(other)


def trailing(statement: Any) -> cst.TrailingWhitespace:
    """Return what is behind the last line of a statement: a comment, the line end."""
    return _last(statement).trailing_whitespace  # type: ignore[no-any-return]


def _last_field(statement: Any) -> str:
    for name in ("finalbody", "orelse"):
        if getattr(statement, name, None) is not None:
            return name
    return next((n for n in ("handlers", "cases") if getattr(statement, n, ())), "body")


def _last(statement: Any) -> Any:
    while not isinstance(statement, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        value = getattr(statement, _last_field(statement))
        statement = value[-1] if isinstance(value, (tuple, list)) else value
    return statement


def with_trailing(statement: Any, end: cst.TrailingWhitespace) -> Any:
    """Return a statement with another end of its last line."""
    if isinstance(statement, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        same = statement.trailing_whitespace is end
        return statement if same else statement.with_changes(trailing_whitespace=end)
    name = _last_field(statement)
    value = getattr(statement, name)
    if isinstance(value, (tuple, list)):
        new = (*value[:-1], with_trailing(value[-1], end))
        return statement if new[-1] is value[-1] else statement.with_changes(**{name: new})
    new = with_trailing(value, end)
    return statement if new is value else statement.with_changes(**{name: new})
