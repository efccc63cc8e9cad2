"""In: the checks of one Cell, both texts. Out: what opens below its row: numbers and sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrate.result import Check, Side, Spread

HEIGHT = 18
BAR = 5  # width of a bar
# the upper end of each bar but the last one
ENDS = ("exact", *(f"1e{power}" for power in range(-9, 0)), "1")


@dataclass(frozen=True)
class Histogram:
    """``path`` draws the bars; ``said`` tells them in words."""

    path: str
    said: str


@dataclass(frozen=True)
class Fact:
    """One comparison with all its numbers as texts."""

    check: Check
    errors: tuple[str, ...]
    torch: str
    mindspore: str
    histogram: Histogram | None


@dataclass(frozen=True)
class Snippet:
    """The line that builds the module or Cell; ``number`` 0: not known."""

    file: str
    number: int
    text: str


@dataclass(frozen=True)
class Drill:
    """Everything about one Cell: torch's line, MindSpore's, and its comparisons."""

    torch: Snippet
    mindspore: Snippet
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Lines:
    """Both texts of a file of the record, line by line; empty where they cannot be read."""

    source: str
    output: str
    before: Sequence[str] = ()
    after: Sequence[str] = ()


def drill(checks: Sequence[Check], texts: Mapping[str, Lines]) -> Drill:
    """The checks of one Cell in the order given; ``texts`` by the path of the source."""
    first = checks[0]
    lines = texts.get(first.source, Lines(first.source, first.source))
    return Drill(
        _snippet(lines.source, first.torch_line, lines.before),
        _snippet(lines.output, first.mindspore_line, lines.after),
        tuple(_fact(check) for check in checks),
    )


def _snippet(file: str, number: int, lines: Sequence[str]) -> Snippet:
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return Snippet(file, number, text)


def _fact(check: Check) -> Fact:
    errors = tuple(
        "" if value is None else f"{value:.1e}" if value else "0"
        for value in (check.local, check.cumulative, check.own, check.limit, check.cumulative_limit)
    )
    if check.spread is None:
        return Fact(check, errors, "", "", None)
    spread = check.spread
    return Fact(check, errors, _brief(spread.torch), _brief(spread.mindspore), histogram(spread))


def _brief(side: Side) -> str:
    odd = f", {side.odd} not finite" if side.odd else ""
    return f"{side.mean:.3g} ± {side.std:.3g} [{side.least:.3g}, {side.most:.3g}]{odd}"


def histogram(spread: Spread) -> Histogram | None:
    """Bars as high as their share, at least one unit where there is anything at all."""
    total = sum(spread.bins)
    if not total:
        return None
    parts = []
    for number, count in enumerate(spread.bins):
        if count:
            high = max(1, round(count / max(spread.bins) * HEIGHT))
            parts.append(f"M{number * BAR} {HEIGHT}v-{high}h{BAR - 1}v{high}z")
    last = max(number for number, count in enumerate(spread.bins) if count)
    half = _reaching(spread.bins, total / 2)
    return Histogram("".join(parts), f"half {_end(half)}, all {_end(last)}")


def _reaching(bins: Sequence[int], wanted: float) -> int:
    seen = 0.0
    for number, count in enumerate(bins):
        seen += count
        if seen >= wanted:
            return number
    return len(bins) - 1


def _end(number: int) -> str:
    if number == 0:
        return ENDS[0]
    return f"below {ENDS[number]}" if number < len(ENDS) else "1 or more"
