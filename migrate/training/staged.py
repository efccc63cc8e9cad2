"""Lead entries, places and recorded receivers of a restructured file back to the original."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from migrate.analysis.types.recorded import Place, Recorded, Seen
from migrate.codegen.emitted import Emitted
from migrate.records.outcomes import Edit, Outcome, Refusal, Site, Span
from migrate.records.result import CellPlace, Entry, OpenPlace
from migrate.syntax.source import Source


@dataclass(frozen=True)
class Staged:
    """A restructured file.

    ``done`` are the statements that became part of a step, ``unclear`` the lines of backwards
    that did not, with the reason; ``cells`` the classes that were added; ``loops`` the lines of
    backwards whose loop Model does not run, with the reason; ``single`` the steps of one network;
    ``evaluations`` the first and last line of loops that Model.eval does not run, with the
    reason; ``before`` is how the file became ``original``.
    """

    original: Source
    source: Source
    emitted: Emitted
    done: tuple[Site, ...]
    unclear: tuple[tuple[int, str], ...]
    cells: frozenset[str]
    loops: tuple[tuple[int, str], ...] = ()
    before: Staged | None = None
    single: frozenset[str] = frozenset()
    evaluations: tuple[tuple[int, int, str], ...] = ()

    def offset(self, old: int) -> int:
        """Where an offset of the original went."""
        at = bisect.bisect_right(self.emitted.marks, (old, 1 << 62)) - 1
        if at < 0:
            return 0
        before, after = self.emitted.marks[at]
        return min(after + old - before, len(self.source.data))

    @cached_property
    def _back(self) -> list[tuple[int, int]]:
        return sorted((new, old) for old, new in self.emitted.marks)

    def origin(self, line: int, column: int) -> tuple[int, int] | None:
        """(line, column) of the original for a place of the restructured text (columns from 1).

        None for text that restructuring wrote.
        """
        source = self.source
        start = source.line_start(line)
        text = source.data[start:].split(b"\n", 1)[0].decode("utf-8")
        offset = start + len(text[: column - 1].encode("utf-8"))
        place = self.back(offset)
        if place is None:
            return None
        found = self.original.line_of(place)
        before = self.original.data[self.original.line_start(found) : place]
        column = len(before.decode("utf-8", "replace")) + 1
        return (found, column) if self.before is None else self.before.origin(found, column)

    def below(self, line: int) -> tuple[int, int]:
        """(line, column) of the original for the text that follows a line of new text."""
        at = bisect.bisect_left(self._back, (self.source.line_start(line), 0))
        old = self._back[at][1] if at < len(self._back) else len(self.original.data) - 1
        found = self.original.line_of(old)
        return (found, 1) if self.before is None else self.before.below(found)

    def back(self, offset: int) -> int | None:
        """The offset in ``original`` of a place of the restructured text; None: it is new."""
        at = bisect.bisect_right(self._back, (offset, 1 << 62)) - 1
        if at < 0:
            return None
        new, old = self._back[at]
        place = old + offset - new
        same = self.original.data[old : place + 1] == self.source.data[new : offset + 1]
        return place if same else None

    def behind(self, before: Staged) -> Staged:
        """The same when the file was restructured before; what is told names its first places."""
        done = ((s, before.origin(s.line, s.column) or (s.line, s.column)) for s in self.done)
        lines = {n: _line(before, n) for n, _ in (*self.unclear, *self.loops)}
        return replace(
            self,
            before=before,
            done=tuple(replace(s, line=p[0], column=p[1]) for s, p in done),
            unclear=tuple((lines[n], text) for n, text in self.unclear),
            loops=tuple((lines[n], text) for n, text in self.loops),
        )


def _line(staged: Staged, line: int) -> int:
    """The line of the original where the code of a line stood."""
    text = staged.source.data[staged.source.line_start(line) :].split(b"\n", 1)[0]
    place = staged.origin(line, len(text) - len(text.lstrip()) + 1)
    return place[0] if place is not None else line


BACKWARD = "torch.Tensor.backward"
STEP = "part of a training step"


def entries(staged: Staged, found: Sequence[Entry], emitted: Emitted | None) -> tuple[Entry, ...]:
    """The entries in the order of the original, with those that a training step has taken over.

    References that restructuring itself wrote (two imports, a base class) are left out; what is
    flagged in its text is counted at the step that it belongs to.
    """
    kept = []
    for entry in found:
        place = staged.origin(entry.line, entry.column)
        if place is None and entry.outcome is Outcome.FLAGGED:
            place = staged.below(entry.line)
        if place is None:
            continue
        kept.append(entry.model_copy(update={"line": place[0], "column": place[1]}))
    reasons = dict(staged.loops)
    for site in staged.done:
        line = emitted.line(staged.offset(site.span.start)) if emitted else 0
        kept.append(
            Entry(
                name=site.name,
                outcome=Outcome.CONVERTED,
                line=site.line,
                column=site.column,
                output_line=line,
                target="nn.TrainOneStepCell",
                note=_note(reasons.get(site.line, "") if site.name == BACKWARD else ""),
            )
        )
    return _evaluated(staged, sorted(kept, key=lambda e: (e.line, e.column)))


def left_open(staged: Staged, found: Sequence[OpenPlace]) -> tuple[OpenPlace, ...]:
    """The places that nobody can assign, where they stand in the original."""
    kept = []
    for one in found:
        place = staged.origin(one.line, one.column)
        if place is not None:
            kept.append(one.model_copy(update={"line": place[0], "column": place[1]}))
    return tuple(kept)


def _evaluated(staged: Staged, found: list[Entry]) -> tuple[Entry, ...]:
    """The entries, the first of each evaluation loop that Model.eval does not run with a note."""
    for first, last, reason in staged.evaluations:
        at = next((i for i, e in enumerate(found) if first <= e.line <= last), None)
        if at is not None:
            note = f"the evaluation loop is not run by Model: {reason}"
            note = f"{found[at].note}; {note}" if found[at].note else note
            found[at] = found[at].model_copy(update={"note": note})
    return tuple(found)


def _note(stays: str) -> str:
    return f"{STEP}; its loop is not run by Model: {stays}" if stays else STEP


def explained(staged: Staged, found: Sequence[Edit | Refusal]) -> tuple[Edit | Refusal, ...]:
    """A backward that is in no training step says why it is not."""
    reasons = dict(staged.unclear)
    changed: list[Edit | Refusal] = []
    for decision in found:
        if isinstance(decision, Refusal) and decision.site.name == BACKWARD:
            place = staged.origin(decision.site.line, decision.site.column)
            reason = reasons.get(place[0]) if place else None
            decision = replace(decision, reason=reason) if reason else decision
        changed.append(decision)
    return tuple(changed)


def cells(staged: Staged, found: Sequence[CellPlace]) -> tuple[CellPlace, ...]:
    """The Modules of the original; the loss Cells have no partner in it."""
    kept = []
    for cell in found:
        first = staged.origin(cell.line, 1)
        if cell.name in staged.cells or first is None:
            continue
        length = cell.end_line - cell.line
        kept.append(cell.model_copy(update={"line": first[0], "end_line": first[0] + length}))
    return tuple(kept)


def moved(recorded: Recorded, staged: Mapping[str, Staged]) -> Recorded:
    """Places in files that were restructured are led to where the text went, or left out."""
    changed = {
        path: _moved(staged[path], found)
        for path, found in recorded.places.items()
        if path in staged
    }
    return Recorded({**recorded.places, **changed}) if changed else recorded


def _moved(staged: Staged, found: Mapping[Place, Seen]) -> dict[Place, Seen]:
    moves = ((_went(staged, place), seen) for place, seen in found.items())
    return {place: seen for place, seen in moves if place is not None}


def _went(staged: Staged, place: Place) -> Place | None:
    """Where a receiver went; None where its text is gone, or stands for something new."""
    if staged.before is not None:
        earlier = _went(staged.before, place)
        if earlier is None:
            return None
        place = earlier
    old, new = staged.original, staged.source
    span = Span(old.offset(place[0], place[1]), old.offset(place[2], place[3]))
    start = staged.offset(span.start)
    end = start + span.end - span.start
    if new.data[start:end] != old.data[span.start : span.end]:
        return None
    if staged.back(start) != span.start or staged.back(end - 1) != span.end - 1:
        return None
    return (*_position(new, start), *_position(new, end))


def _position(source: Source, offset: int) -> tuple[int, int]:
    line = source.line_of(offset)
    return line, offset - source.line_start(line)
