"""The text of a file with edits, and where in it each old offset went."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from migrate.records.outcomes import Span


@dataclass(frozen=True)
class Emitted:
    """The new text, and the output offset of any source offset.

    ``failed``: offsets of edits that make no Python, which are left out, and why. ``lost``:
    comments that the new text has fewer of.
    """

    data: bytes
    marks: tuple[tuple[int, int], ...]
    line_starts: tuple[int, ...]
    inserted: tuple[Span, ...] = ()
    failed: tuple[tuple[int, str], ...] = ()
    lost: tuple[Span, ...] = ()

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


def emitted(data: bytes, marks: tuple[tuple[int, int], ...], **more: Any) -> Emitted:
    """Return a text with its marks."""
    starts = (0, *accumulate(len(line) + 1 for line in data.split(b"\n")[:-1]))
    return Emitted(data, marks, starts, **more)
