"""In: a file and what was restructured in it. Out: which place of one is which of the other."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace
from functools import cached_property

from migrate.emit import Emitted
from migrate.outcomes import Site
from migrate.source import Source


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
