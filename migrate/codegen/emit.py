"""In: edits over a source. Out: the new text, and where in it each old offset went."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from migrate.codegen.grouping import binds_like, grouped, is_loose, is_split, shape_of, slot_of
from migrate.records.outcomes import Edit, Piece, Span, Wrap
from migrate.syntax.source import Source
from migrate.syntax.trees import children, within

_OURS = ("import", "imports", "helpers")  # what edits of no statement are called


@dataclass(frozen=True)
class Emitted:
    """The new text, and the output offset of any source offset."""

    data: bytes
    marks: tuple[tuple[int, int], ...]
    line_starts: tuple[int, ...]
    inserted: tuple[Span, ...] = ()

    def origin(self, place: int) -> int | None:
        """Return the source offset of a place of the output; None in imports and helpers."""
        if any(span.start <= place < span.end for span in self.inserted):
            return None
        at = bisect.bisect_right(self._back, (place, 1 << 62)) - 1
        new, old = self._back[max(at, 0)]
        end = self._back[at + 1][1] if at + 1 < len(self._back) else 1 << 62
        return min(old + place - new, max(old, end - 1))

    @cached_property
    def _back(self) -> list[tuple[int, int]]:
        return sorted((new, old) for old, new in self.marks) or [(0, 0)]

    def line(self, offset: int) -> int:
        """The 1-based output line where the source offset went (0: nothing of it is left)."""
        at = bisect.bisect_right(self.marks, (offset, 1 << 62)) - 1
        if at < 0:
            return 1
        old, new = self.marks[at]
        return bisect.bisect_right(self.line_starts, min(new + offset - old, len(self.data)))


def emit(source: Source, edits: Sequence[Edit]) -> Emitted:
    """Apply the edits; one inside the span of another counts only within its pieces."""
    writer = Writer(source, edits)
    writer.range(Span(0, len(source.data)), None, True)
    data = b"".join(writer.chunks)
    lines = (0, *accumulate(len(line) + 1 for line in data.split(b"\n")[:-1]))
    return Emitted(data, tuple(sorted(writer.marks)), lines, tuple(writer.inserted))


def in_order(edits: Sequence[Edit]) -> list[Edit]:
    """Those that change text, from first to last, an outer one before those inside it.

    Where two statements end at one place, what goes behind the inner one comes first.
    """

    def key(edit: Edit) -> tuple[int, bool, int, bool, int]:
        start, end = edit.site.span
        behind = start == end and edit.parts is not None and str(edit.parts[0]) in ("\n", "\r\n")
        depth = edit.site.column if behind else 0
        return start, end > start, -end, not isinstance(edit, Wrap), -depth

    return sorted((e for e in edits if e.parts is not None), key=key)


class Writer:
    """Writes a source with edits: what no edit covers is copied, parentheses are set where needed.

    ``marks`` are the (old offset, new offset) of everything copied or edited.
    """

    def __init__(self, source: Source, edits: Sequence[Edit]) -> None:
        self.source = source
        self.order = in_order(edits)
        self.starts = [e.site.span.start for e in self.order]
        self.rank = {id(e): rank for rank, e in enumerate(self.order)}
        self._restart()

    def _restart(self) -> None:
        self.length = 0
        self.chunks: list[bytes] = []
        self.marks: list[tuple[int, int]] = []
        self.inserted: list[Span] = []

    def within(self, span: Span) -> str:
        """Return what becomes of one range of the source."""
        self._restart()
        self.range(span, None, False)
        return b"".join(self.chunks).decode("utf-8")

    def changes(self, span: Span) -> bool:
        """Return whether an edit begins inside a span."""
        return next(self._from(span.start, span.end - 1), None) is not None

    def range(self, span: Span, outer: Edit | None, whole: bool) -> None:
        """Write one range of the source with the edits inside it, ``outer`` apart."""
        position = span.start
        for edit in self._from(span.start, span.end):
            place = edit.site.span
            if edit is outer or place.end > span.end:
                continue
            if place.start < position:
                if not any(edit.parts or ()):  # the rest of what is deleted goes as well
                    position = max(position, place.end)
                continue
            if not whole and place.start == place.end and place.start in (span.start, span.end):
                continue
            if outer is not None and place == outer.site.span and not self._wraps(outer, edit):
                continue
            self._copy(position, place.start)
            self._edit(edit, (outer is None or place != span) and self._is_loose(edit))
            position = place.end
        self._copy(position, span.end)

    def _wraps(self, outer: Edit, edit: Edit) -> bool:
        return isinstance(outer, Wrap) and self.rank[id(outer)] < self.rank[id(edit)]

    def _from(self, start: int, end: int) -> Iterator[Edit]:
        """The edits that begin between two offsets, both included."""
        for index in range(bisect.bisect_left(self.starts, start), len(self.order)):
            if self.starts[index] > end:
                return
            yield self.order[index]

    def _copy(self, start: int, end: int) -> None:
        if end > start:
            self.marks.append((start, self.length))
            self._write(self.source.data[start:end])

    def _write(self, data: bytes) -> None:
        self.chunks.append(data)
        self.length += len(data)

    def _edit(self, edit: Edit, loose: bool) -> None:
        assert edit.parts is not None
        begin, parts = self.length, edit.parts
        self.marks.append((edit.site.span.start, begin))
        pieces = {i: p for i, p in enumerate(parts) if isinstance(p, Piece) and p.node is not None}
        shapes = {i: shape for i, p in pieces.items() if (shape := self._becomes(p, edit))}
        held = bool(pieces) and is_split(self.source.text(edit.site.span))
        around = grouped(self.source, parts, shapes, held)
        self._write(b"(" * loose)
        for index, part in enumerate(parts):
            self._write(b"(" * (index in around))
            if isinstance(part, Piece):
                self.range(part.span, edit, False)
            else:
                self._write(part.encode("utf-8"))
            self._write(b")" * (index in around))
        self._write(b")" * loose)
        if edit.site.name in _OURS:
            self.inserted.append(Span(begin, self.length))

    # -- parentheses ----------------------------------------------------------------------------

    def _is_loose(self, edit: Edit) -> bool:
        """Return whether what an edit makes of an expression needs parentheses where that was."""
        shape = self._shape(edit)
        if shape is None or isinstance(shape, (ast.Name, ast.Attribute, ast.Call)):
            return False
        node, parent = self._expressions.get(edit.site.span, (None, None))
        if node is None or binds_like(node, shape):
            return False
        return is_loose(slot_of(parent, node), shape) and not self.source.is_enclosed(node)

    @cached_property
    def _expressions(self) -> dict[Span, tuple[ast.expr, ast.AST]]:
        """The expressions where edits begin, each with the node that holds it."""
        offset, starts = self.source.offset, set(self.starts)
        return {
            self.source.span(child): (child, node)
            for node in within(self.source.tree)
            for child in children(node)
            if isinstance(child, ast.expr) and offset(child.lineno, child.col_offset) in starts
        }

    def _shape(self, edit: Edit) -> ast.expr | None:
        """Return an expression of the class of what an edit makes; None where it is none."""
        made = shape_of(self.source, edit.parts or ())
        if not isinstance(made, int):
            return made
        piece = (edit.parts or ())[made]
        assert isinstance(piece, Piece)
        return self._becomes(piece, edit) or piece.node

    def _becomes(self, piece: Piece, outer: Edit) -> ast.expr | None:
        """Return what the expression of a piece becomes by an edit of its own."""
        for edit in self._from(piece.span.start, piece.span.start):
            if edit.site.span == piece.span != outer.site.span and edit is not outer:
                return self._shape(edit)
        return None


def covered(edits: Sequence[Edit]) -> list[Span]:
    """The parts of the source that edits replace and no piece brings back."""
    lost: list[Span] = []
    for edit in edits:
        if edit.parts is None:
            continue
        position = edit.site.span.start
        pieces = sorted((p.span for p in edit.parts if isinstance(p, Piece)), key=lambda s: s.start)
        for span in pieces:
            if span.start > position:
                lost.append(Span(position, span.start))
            position = max(position, span.end)
        if edit.site.span.end > position:
            lost.append(Span(position, edit.site.span.end))
    return lost
