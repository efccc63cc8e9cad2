"""Merge two changed forms of one text line by line, and mark what both changed as git does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MINE, OTHER = "edited by hand", "converted anew"
_OPEN, _BETWEEN, _CLOSE = b"<<<<<<< ", b"=======", b">>>>>>> "


@dataclass(frozen=True)
class Merged:
    """The merged text; ``conflicts`` are the lines, from 1, at which a marked place begins."""

    data: bytes
    conflicts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Hunk:
    """A stretch of the merged lines: agreed on (``other`` is None), or two forms of it."""

    mine: Sequence[bytes]
    other: Sequence[bytes] | None = None


def merge(base: bytes, mine: bytes, other: bytes) -> Merged:
    """Merge what two sides made of ``base``; what both changed stands there twice, marked."""
    lines: list[bytes] = []
    conflicts: list[int] = []
    newline = b"\r\n" if b"\r\n" in mine else b"\n"
    for hunk in hunks(*(text.splitlines(keepends=True) for text in (base, mine, other))):
        if hunk.other is None:
            lines += hunk.mine
            continue
        _end(lines, newline)
        conflicts.append(len(lines) + 1)
        lines += [_OPEN + MINE.encode() + newline, *hunk.mine]
        _end(lines, newline)
        lines += [_BETWEEN + newline, *hunk.other]
        _end(lines, newline)
        lines.append(_CLOSE + OTHER.encode() + newline)
    return Merged(b"".join(lines), tuple(conflicts))


def _end(lines: list[bytes], newline: bytes) -> None:
    """Complete a last line that has no end: a marker needs a line of its own."""
    if lines and not lines[-1].endswith((b"\n", b"\r")):
        lines[-1] += newline


def hunks(base: Sequence[bytes], mine: Sequence[bytes], other: Sequence[bytes]) -> Iterator[Hunk]:
    """Yield the merged text in order.

    Between two stretches that are alike on all three sides at most one side has changed, or both
    have made the same of it; what is left is a conflict, without the lines that both begin and end
    with.
    """
    at_base = at_mine = at_other = 0
    for start, in_mine, in_other, size in _alike(base, mine, other):
        yield from _between(
            base[at_base:start], mine[at_mine:in_mine], other[at_other:in_other]
        )  # fmt: skip
        if size:
            yield Hunk(base[start : start + size])
        at_base, at_mine, at_other = start + size, in_mine + size, in_other + size


def _between(
    base: Sequence[bytes], mine: Sequence[bytes], other: Sequence[bytes]
) -> Iterator[Hunk]:
    if mine in (base, other):
        yield Hunk(other)
    elif other == base:
        yield Hunk(mine)
    else:
        head = _common(mine, other)
        tail = _common(mine[head:][::-1], other[head:][::-1])
        yield Hunk(mine[:head])
        yield Hunk(mine[head : len(mine) - tail], other[head : len(other) - tail])
        yield Hunk(mine[len(mine) - tail :])


def _common(one: Sequence[bytes], two: Sequence[bytes]) -> int:
    """Return how many lines two stretches begin with alike."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(two)))


def _alike(
    base: Sequence[bytes], mine: Sequence[bytes], other: Sequence[bytes]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (place in base, in mine, in the other, length) of what is alike on all sides; the last
    one, of length 0, is their end."""
    ours = SequenceMatcher(None, base, mine, autojunk=False).get_matching_blocks()
    theirs = SequenceMatcher(None, base, other, autojunk=False).get_matching_blocks()
    first = second = 0
    while first < len(ours) and second < len(theirs):
        one, two = ours[first], theirs[second]
        start, end = max(one.a, two.a), min(one.a + one.size, two.a + two.size)
        if start < end:
            yield start, one.b + start - one.a, two.b + start - two.a, end - start
        if one.a + one.size < two.a + two.size:
            first += 1
        else:
            second += 1
    yield len(base), len(mine), len(other), 0


def is_marked(data: bytes) -> bool:
    """Return whether a text holds a place that was marked and not yet decided."""
    starts = (_OPEN + MINE.encode(), _CLOSE + OTHER.encode())
    lines = data.splitlines() if all(start in data for start in starts) else []
    return all(any(line.startswith(start) for line in lines) for start in starts)


def touched(base: bytes, mine: bytes) -> str:
    """Return the lines of ``mine`` that are other than in ``base``: ``12-14, 30``."""
    before, after = base.splitlines(), mine.splitlines()
    found = []
    for tag, _, _, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            found.append(f"{start + 1}-{end}" if end > start + 1 else str(max(1, start + 1)))
    return ", ".join(found)


def moved(before: bytes, after: bytes) -> dict[int, int]:
    """Return where each line that is still there now stands, by where it stood (from 1)."""
    lines = (before.splitlines(), after.splitlines())
    blocks = SequenceMatcher(None, *lines, autojunk=False).get_matching_blocks()
    return {b.a + n + 1: b.b + n + 1 for b in blocks for n in range(b.size)}
