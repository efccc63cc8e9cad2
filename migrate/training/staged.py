"""In: a file and what was restructured in it. Out: which place of one is which of the other."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from functools import cached_property

from migrate.emit import Emitted
from migrate.outcomes import Site
from migrate.source import Source

EVAL = "torch.nn.Module.eval"


@dataclass(frozen=True)
class Staged:
    """A restructured file.

    ``done`` are the statements that became part of a step, ``unclear`` the lines of backwards
    that did not, with the reason; ``cells`` the classes that were added; ``loops`` the lines of
    backwards whose loop Model does not run, with the reason.
    """

    original: Source
    source: Source
    emitted: Emitted
    done: tuple[Site, ...]
    unclear: tuple[tuple[int, str], ...]
    cells: frozenset[str]
    loops: tuple[tuple[int, str], ...] = ()

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
        at = bisect.bisect_right(self._back, (offset, 1 << 62)) - 1
        if at < 0:
            return None
        new, old = self._back[at]
        place = old + offset - new
        if self.original.data[old : place + 1] != source.data[new : offset + 1]:
            return None
        found = self.original.line_of(place)
        before = self.original.data[self.original.line_start(found) : place]
        return found, len(before.decode("utf-8", "replace")) + 1
