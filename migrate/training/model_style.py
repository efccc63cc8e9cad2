"""In: a file whose training steps are Cells. Out: the same with its epochs run by Model.

What Model would do in another way stays a loop, and the reason is kept.
"""

from __future__ import annotations

import ast
import bisect
from collections.abc import Collection
from dataclasses import dataclass

from migrate.emit import Emitted, emit
from migrate.outcomes import Edit
from migrate.source import Source, read
from migrate.training import callbacks
from migrate.training.epoch_loops import EpochLoop, Refused, epoch_loops


@dataclass(frozen=True)
class Styled:
    """``stays`` are the loops that stay: the line of the step's call, and why."""

    source: Source
    emitted: Emitted
    stays: tuple[Refused, ...]


def styled(source: Source, own: str, single: Collection[str]) -> Styled:
    """Every loop over epochs that Model can run is run by it."""
    taken = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    taken |= {n.name for n in ast.walk(source.tree) if isinstance(n, (ast.ClassDef, ast.alias))}
    edits: list[Edit] = []
    stays: list[Refused] = []
    for found in epoch_loops(source, own, single):
        if isinstance(found, EpochLoop):
            edits += callbacks.edits(source, found, own, taken)
        else:
            stays.append(found)
    emitted = emit(source, edits)
    renewed = read(source.path, source.encode(emitted.data))
    return Styled(renewed, emitted, tuple(stays))


def composed(original: Source, first: Emitted, middle: Source, second: Emitted) -> Emitted:
    """Where the offsets of the original went when both changes are made, one after the other."""
    onward = second.marks
    points = {(old, _along(onward, between)) for old, between in first.marks}
    back = sorted((new, old) for old, new in first.marks)
    for between, new in second.marks:
        at = bisect.bisect_right(back, (between, 1 << 62)) - 1
        if at < 0:
            continue
        start, old = back[at]
        place = old + between - start
        if original.data[old : place + 1] == middle.data[start : between + 1]:
            points.add((place, new))
    known = sorted((old, new) for old, new in points if new is not None)
    return Emitted(second.data, tuple(known), second.line_starts)


def _along(marks: tuple[tuple[int, int], ...], offset: int) -> int | None:
    at = bisect.bisect_right(marks, (offset, 1 << 62)) - 1
    return None if at < 0 else marks[at][1] + offset - marks[at][0]
