"""In: a file before and after conversion, with its entries. Out: rows of a side-by-side diff."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from markupsafe import Markup

from migrate.report.highlight import Line, changed, markup, tokens
from migrate.result import Entry

CONTEXT = 3
SHORTEST_FOLD = 8


@dataclass(frozen=True)
class Row:
    """One row: numbers count from 1 and are 0 where that side has no line."""

    kind: Literal["same", "edit", "del", "add"]
    left: int
    right: int
    left_html: Markup
    right_html: Markup
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Block:
    """A stretch of rows; ``folded`` ones are unchanged and closed at first."""

    folded: bool
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Pair:
    """Line indices that stand in one row (from 0; -1: none)."""

    left: int
    right: int
    same: bool


def blocks(
    before: str, after: str, entries: Sequence[Entry], python: bool = True
) -> tuple[Block, ...]:
    """The whole diff. Lines end in ``\\n``; ``entries`` belong to the file."""
    left, right = tokens(before, python), tokens(after, python)
    pairs = list(_pairs(_text(left), _text(right), _anchors(entries)))
    by_line = _entries_by_line(entries)
    rows = [_row(pair, left, right, by_line) for pair in pairs]
    return tuple(_fold(rows))


def _text(lines: Sequence[Line]) -> list[str]:
    return ["".join(token.text for token in line) for line in lines]


def _anchors(entries: Sequence[Entry]) -> dict[int, int]:
    return {e.line - 1: e.output_line - 1 for e in entries if e.output_line}


def _entries_by_line(entries: Sequence[Entry]) -> dict[int, tuple[Entry, ...]]:
    found: dict[int, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda e: (e.line, e.column)):
        found[entry.line].append(entry)
    return {line: tuple(group) for line, group in found.items()}


def _pairs(left: list[str], right: list[str], anchors: dict[int, int]) -> Iterator[Pair]:
    # autojunk guesses which lines are noise: fine for speed on huge files only
    matcher = SequenceMatcher(None, left, right, autojunk=len(left) > 4000)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from (Pair(a + i, c + i, True) for i in range(b - a))
        else:
            yield from _replaced(a, b, c, d, anchors)


def _replaced(a: int, b: int, c: int, d: int, anchors: dict[int, int]) -> Iterator[Pair]:
    """Put changed lines side by side: where an entry says so, else one after another."""
    owner = {target: line for line, target in anchors.items() if c <= target < d}
    uneven = b - a != d - c
    while a < b or c < d:
        left, right = a < b, c < d
        # an output line before the partner of this input line, or one that a later line owns
        early = uneven and left and right and c < anchors.get(a, c) < d
        later = left and a not in anchors and a < owner.get(c, a) < b
        take_left = left and not early
        take_right = right and not (later and take_left)
        yield Pair(a if take_left else -1, c if take_right else -1, False)
        a, c = a + take_left, c + take_right


def _row(
    pair: Pair, left: Sequence[Line], right: Sequence[Line], entries: dict[int, tuple[Entry, ...]]
) -> Row:
    before = left[pair.left] if pair.left >= 0 else ()
    after = right[pair.right] if pair.right >= 0 else ()
    marks: tuple[list[bool], list[bool]] = ([], [])
    if not pair.same and before and after:
        marks = changed(before, after)
    return Row(
        kind=_kind(pair),
        left=pair.left + 1,
        right=pair.right + 1,
        left_html=markup(before, marks[0]),
        right_html=markup(after, marks[1]),
        entries=entries.get(pair.left + 1, ()) if pair.left >= 0 else (),
    )


def _kind(pair: Pair) -> Literal["same", "edit", "del", "add"]:
    if pair.same:
        return "same"
    if pair.left < 0:
        return "add"
    return "del" if pair.right < 0 else "edit"


def _fold(rows: Sequence[Row]) -> Iterator[Block]:
    near = [False] * len(rows)
    for index, row in enumerate(rows):
        if row.kind != "same" or any(entry.code for entry in row.entries):
            low, high = max(0, index - CONTEXT), min(len(rows), index + CONTEXT + 1)
            near[low:high] = [True] * (high - low)
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or near[end] != near[start]:
            folded = not near[start] and end - start >= SHORTEST_FOLD
            yield Block(folded, tuple(rows[start:end]))
            start = end
