"""Dependency-tracked fixpoint: cells that are computed from others, again whenever one changes.

A cell is a unit (a walk of a function or of a module's top level) or a small value derived from
units: the result of a function, a member of a class, what callers pass. Whatever is read while a
cell is computed is recorded; when a value changes, its readers are computed again, small values
first, then units in the order of the call graph. The last computation of a cell replaces the one
before. A cell that changes too often is widened to unknown, for good.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

Cell = tuple[Hashable, ...]  # the name of what it is, and of what

JOINED = 8  # changes of a cell after which values are joined instead of replaced
WIDENED = 24  # changes of a cell after which it is unknown
_NEVER = object()  # the value of a cell that was not computed yet


@dataclass(eq=False)
class Fixpoint:
    """Values of cells, and the cells that have read each of them.

    ``compute`` computes the value of a cell, and may read others. ``combine`` joins two values of
    one cell; ``widen`` is the value of a cell that does not converge. ``rank`` orders units, 0 for
    derived cells. ``start`` is the value of a cell while it is computed for the first time.
    """

    compute: Callable[[Cell], object]
    combine: Callable[[Cell, object, object], object]
    widen: Callable[[Cell, object], object]
    rank: Callable[[Cell], int]
    start: Callable[[Cell], object]
    values: dict[Cell, object] = field(default_factory=dict)
    computed: int = 0
    _readers: dict[Cell, dict[Cell, None]] = field(default_factory=dict)
    _active: list[Cell] = field(default_factory=list)
    _read: list[set[Cell]] = field(default_factory=list)  # what each of these has read so far
    _traces: list[dict[Cell, object] | None] = field(default_factory=list)
    _running: set[Cell] = field(default_factory=set)
    _stale: set[Cell] = field(default_factory=set)
    _derived: list[Cell] = field(default_factory=list)
    _units: list[Cell] = field(default_factory=list)
    _later: list[Cell] = field(default_factory=list)
    _changes: dict[Cell, int] = field(default_factory=dict)

    def read(self, cell: Cell) -> Any:
        """Return the value of a cell as known so far; the cell computed now depends on it."""
        value = self.values.get(cell, _NEVER)
        if value is _NEVER or (
            cell in self._stale and cell not in self._running and not self.rank(cell)
        ):
            self._run(cell)
            value = self.values[cell]
        if self._read:
            if cell not in (seen := self._read[-1]):
                # a reader that is noted once is computed again, whatever becomes of the cell
                seen.add(cell)
                self._readers.setdefault(cell, {})[self._active[-1]] = None
            if (trace := self._traces[-1]) is not None:
                trace[cell] = value
        return value

    def trace(self, on: bool) -> dict[Cell, object]:
        """Note what the cell that is computed now reads from here on, or no more."""
        found: dict[Cell, object] = {}
        if self._traces:
            self._traces[-1] = found if on else None
        return found

    def same(self, reads: dict[Cell, object]) -> bool:
        """Read cells again; return whether all have the values that they had."""
        return all(self.read(cell) is value for cell, value in reads.items())

    def ensure(self, cell: Cell) -> None:
        """Compute a cell if it never was; the cell that is computed now does not depend on it."""
        if cell not in self.values:
            self._run(cell)

    def reader(self) -> Cell | None:
        """Return the cell that is computed now."""
        return self._active[-1] if self._active else None

    def invalidate(self, cell: Cell) -> None:
        """Have a cell computed again: what it rests on has changed."""
        if cell in self.values and cell not in self._stale:
            self._stale.add(cell)
            (self._units if self.rank(cell) else self._derived).append(cell)

    def settle(self) -> None:
        """Compute what is stale until nothing is.

        Results come from callees and parameters from callers: the units that are stale are walked
        in sweeps, callees first and callers first by turns. What becomes stale ahead of a sweep is
        part of it, the rest waits for the next.
        """
        direction = 1
        self._derive()
        while self._units:
            direction = -direction
            sweep: list[tuple[int, int, Cell]] = []
            number = 0
            at: int | None = None
            while True:
                waiting, self._units = self._units, []
                for cell in waiting:
                    place = direction * self.rank(cell)
                    if at is None or place >= at:
                        number += 1
                        heapq.heappush(sweep, (place, number, cell))
                    else:
                        self._later.append(cell)
                if not sweep:
                    break
                at, _, cell = heapq.heappop(sweep)
                if cell in self._stale:
                    self._run(cell)
                    self._derive()
            self._units, self._later = self._later, []

    def _derive(self) -> None:
        """Compute the derived cells that are stale, so that their readers are known to be."""
        while self._derived:
            cell = self._derived.pop()
            if cell in self._stale:
                self._run(cell)

    def changed(self, cell: Cell) -> None:
        """Have the readers of a cell computed again."""
        for reader in self._readers.pop(cell, ()):
            self.invalidate(reader)

    def renew(self, gone: Callable[[Cell], bool]) -> None:
        """Drop some cells, and have what has read them and all derived cells computed again."""
        dropped = [cell for cell in self.values if gone(cell)]
        for cell in dropped:
            for known in (self.values, self._changes):
                known.pop(cell, None)
            self._stale.discard(cell)
        for cell in dropped:
            self.changed(cell)
        for cell in list(self.values):
            if not self.rank(cell):
                self.invalidate(cell)

    def _computed(self, cell: Cell) -> object:
        self._active.append(cell)
        self._read.append(set())
        self._traces.append(None)
        new = self.compute(cell)
        self._traces.pop()
        self._active.pop()
        self._read.pop()
        return new

    def _run(self, cell: Cell) -> None:
        first = cell not in self.values
        if first:
            self.values[cell] = self.start(cell)
        self._stale.discard(cell)
        self._running.add(cell)
        new = self._computed(cell)
        self._running.discard(cell)
        self.computed += 1
        old = self.values[cell]
        changes = self._changes.get(cell, 0)
        if changes > WIDENED:
            new = self.widen(cell, new)
        elif changes > JOINED:
            new = self.combine(cell, old, new)
        if new != old:
            self._changes[cell] = changes + 1
            self.values[cell] = new
            self.changed(cell)

    def disagreeing(self) -> Iterator[tuple[Cell, object, object]]:
        """Yield the cells that would have another value if they were computed now, with both."""
        for cell in list(self.values):
            held = self.values[cell]
            new = self._computed(cell)
            changes = self._changes.get(cell, 0)
            if changes > WIDENED:
                new = self.widen(cell, new)
            elif changes > JOINED:
                new = self.combine(cell, held, new)
            if new != held:
                yield cell, held, new
