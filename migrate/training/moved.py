"""In: what receivers were where they stood. Out: the same at their places in restructured files."""

from __future__ import annotations

from collections.abc import Mapping

from migrate.outcomes import Span
from migrate.receivers.recorded import Place, Recorded, Seen
from migrate.source import Source
from migrate.training.staged import Staged


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
