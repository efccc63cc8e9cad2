"""In: edits over a source. Out: the new text, and where in it each old offset went."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from migrate.codegen.grouping import binds_like, grouped, is_loose, is_split, slot_of, top
from migrate.records.outcomes import Edit, Piece, Span
from migrate.syntax.source import Source
from migrate.syntax.trees import children
from migrate.syntax.trees import within as all_within

_OURS = ("import", "imports", "helpers")  # what edits of no statement are called


@dataclass
class Emission:
    """The text written so far and the (old offset, new offset) of everything copied or edited."""

    source: Source
    chunks: list[bytes] = field(default_factory=list)
    length: int = 0
    marks: list[tuple[int, int]] = field(default_factory=list)
    inserted: list[Span] = field(default_factory=list)

    @cached_property
    def places(self) -> dict[Span, tuple[ast.expr, ast.AST]]:
        """The expressions of the source, each with the node that holds it."""
        return {
            self.source.span(child): (child, node)
            for node in all_within(self.source.tree)
            for child in children(node)
            if isinstance(child, ast.expr)
        }

    def copy(self, start: int, end: int) -> None:
        if end > start:
            self.marks.append((start, self.length))
            self.write(self.source.data[start:end])

    def write(self, data: bytes) -> None:
        self.chunks.append(data)
        self.length += len(data)

    @property
    def data(self) -> bytes:
        return b"".join(self.chunks)


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
    order = in_order(edits)
    out = Emission(source)
    starts = [e.site.span.start for e in order]
    _range(out, Span(0, len(source.data)), order, starts, None, True)
    data = out.data
    lines = [0]
    position = data.find(b"\n")
    while position >= 0:
        lines.append(position + 1)
        position = data.find(b"\n", position + 1)
    return Emitted(data, tuple(sorted(out.marks)), tuple(lines), tuple(out.inserted))


def in_order(edits: Sequence[Edit]) -> list[Edit]:
    """Those that change text, from first to last, an outer one before those inside it."""
    return sorted(
        (e for e in edits if e.parts is not None),
        key=lambda e: (e.site.span.start, e.site.span.end > e.site.span.start, -e.site.span.end),
    )


def within(source: Source, order: list[Edit], starts: list[int], span: Span) -> bytes:
    """What becomes of one range of the source; ``starts`` are the places of the ordered edits."""
    out = Emission(source)
    _range(out, span, order, starts, None, False)
    return out.data


def _range(
    out: Emission, span: Span, order: list[Edit], starts: list[int], outer: Edit | None, whole: bool
) -> None:
    """Write one range of the source with the edits inside it, ``outer`` apart."""
    position = span.start
    index = bisect.bisect_left(starts, span.start)
    while index < len(order) and starts[index] <= span.end:
        edit = order[index]
        index += 1
        place = edit.site.span
        if edit is outer or place.end > span.end:
            continue
        if place.start < position:
            if not any(edit.parts or ()):  # the rest of what is deleted goes as well
                position = max(position, place.end)
            continue
        if not whole and place.start == place.end and place.start in (span.start, span.end):
            continue
        if outer is not None and place == outer.site.span:
            continue
        out.copy(position, place.start)
        loose = (outer is None or place != span) and _is_loose(out, edit, order, starts)
        _one(out, edit, order, starts, loose)
        position = place.end
    out.copy(position, span.end)


def _is_loose(out: Emission, edit: Edit, order: list[Edit], starts: list[int]) -> bool:
    """Return whether what an edit makes of an expression needs parentheses where that was."""
    shape = _shape(out.source, edit, order, starts)
    if shape is None or isinstance(shape, (ast.Name, ast.Attribute, ast.Call)):
        return False
    place = out.places.get(edit.site.span)
    if place is None or binds_like(place[0], shape):
        return False
    return is_loose(slot_of(place[1], place[0]), shape) and not out.source.is_enclosed(place[0])


def _shape(source: Source, edit: Edit, order: list[Edit], starts: list[int]) -> ast.expr | None:
    """Return an expression of the class of what an edit makes; None where it is no expression."""
    made = top(source, edit.parts or ())
    if not isinstance(made, int):
        return made
    piece = (edit.parts or ())[made]
    assert isinstance(piece, Piece)
    return _becomes(source, piece, edit, order, starts) or piece.node


def _becomes(
    source: Source, piece: Piece, outer: Edit, order: list[Edit], starts: list[int]
) -> ast.expr | None:
    """Return what the expression of a piece becomes by an edit of its own."""
    index = bisect.bisect_left(starts, piece.span.start)
    while index < len(order) and starts[index] == piece.span.start:
        edit = order[index]
        index += 1
        if edit.site.span == piece.span != outer.site.span and edit is not outer:
            return _shape(source, edit, order, starts)
    return None


def _one(out: Emission, edit: Edit, order: list[Edit], starts: list[int], loose: bool) -> None:
    assert edit.parts is not None
    begin = out.length
    out.marks.append((edit.site.span.start, begin))
    pieces = [(i, p) for i, p in enumerate(edit.parts) if isinstance(p, Piece) and p.node]
    made = {i: _becomes(out.source, p, edit, order, starts) for i, p in pieces}
    around = grouped(
        out.source,
        edit.parts,
        {i: s for i, s in made.items() if s is not None},
        bool(pieces) and is_split(out.source.text(edit.site.span)),
    )
    if loose:
        out.write(b"(")
    for index, part in enumerate(edit.parts):
        if isinstance(part, Piece):
            if index in around:
                out.write(b"(")
            _range(out, part.span, order, starts, edit, False)
            if index in around:
                out.write(b")")
        else:
            out.write(part.encode("utf-8"))
    if loose:
        out.write(b")")
    if edit.site.name in _OURS:
        out.inserted.append(Span(begin, out.length))


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
