"""Lay the checks of one model out as a table of Cells against rungs, and what opens below a row."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrate.records.outcomes import Verdict
from migrate.records.result import Check, ModelResult, Side, Spread
from migrate.report.ledger import FINE

_WORST_LAST = {verdict: place for place, verdict in enumerate(Verdict)}
# upper ends of log10(error / limit) for the colours 0 to 6; above the last it is 7
_STEPS = (-2.0, -1.0, -0.3, 0.0, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Column:
    """One rung in one mode."""

    rung: str
    mode: str


@dataclass(frozen=True)
class Heat:
    """What one number shows: ``level`` 0 (far below the limit) to 7 (far above), -1 unknown."""

    level: int
    text: str


@dataclass(frozen=True)
class Square:
    """One Cell on one rung in one mode; ``calls`` checks are folded into it, the worst shown."""

    verdict: Verdict
    local: Heat
    cumulative: Heat
    calls: int
    elements: int
    tip: str


@dataclass(frozen=True)
class CellRow:
    """One Cell: its classes and lines, and one square per column or None.

    ``parent`` and ``label`` together are its path in torch.
    """

    parent: str
    label: str
    torch_class: str
    mindspore_class: str
    source: str
    torch_line: int
    mindspore_line: int
    squares: tuple[Square | None, ...]
    fine: bool
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class HeatMap:
    """The whole table; ``rungs`` gives each rung with the number of its columns."""

    columns: tuple[Column, ...]
    rungs: tuple[tuple[str, int], ...]
    rows: tuple[CellRow, ...]


def heat_map(model: ModelResult) -> HeatMap:
    """Rows in order of execution, columns in the order of the ladder."""
    columns = _columns(model)
    cells: dict[str, list[Check]] = defaultdict(list)
    # the forward rungs tell when a Cell ran; others number their checks in their own ways
    ran = {c.torch_path: c.order for c in reversed(model.checks) if c.rung.startswith("forward")}
    for check in sorted(model.checks, key=lambda c: ran.get(c.torch_path, c.order)):
        cells[check.torch_path].append(check)
    rows = tuple(_cell_row(path, checks, columns) for path, checks in cells.items())
    rungs = dict.fromkeys(column.rung for column in columns)
    widths = tuple((rung, sum(c.rung == rung for c in columns)) for rung in rungs)
    return HeatMap(columns, widths, rows)


def _columns(model: ModelResult) -> tuple[Column, ...]:
    used = {Column(check.rung, check.mode) for check in model.checks}
    known = [Column(rung.name, rung.mode) for rung in model.rungs]
    known += [Column(check.rung, check.mode) for check in model.checks]
    ordered = [column for column in dict.fromkeys(known) if column in used]
    order = {rung: i for i, rung in enumerate(dict.fromkeys(c.rung for c in ordered))}
    return tuple(sorted(ordered, key=lambda c: (order[c.rung], c.mode != "pynative")))


def _cell_row(path: str, checks: Sequence[Check], columns: Sequence[Column]) -> CellRow:
    groups: dict[Column, list[Check]] = defaultdict(list)
    for check in checks:
        groups[Column(check.rung, check.mode)].append(check)
    first = checks[0]
    return CellRow(
        parent="".join(path.rpartition(".")[:2]),
        label=path.rpartition(".")[2] or "(whole model)",
        torch_class=first.torch_class,
        mindspore_class=first.mindspore_class,
        source=first.source,
        torch_line=first.torch_line,
        mindspore_line=first.mindspore_line,
        squares=tuple(_square(groups[c]) if c in groups else None for c in columns),
        fine=all(check.verdict in FINE for check in checks),
        checks=tuple(check for column in columns for check in groups.get(column, ())),
    )


def _square(checks: Sequence[Check]) -> Square:
    worst = max(checks, key=_badness)
    return Square(
        verdict=worst.verdict,
        local=heat(worst.local, worst.limit),
        cumulative=heat(worst.cumulative, worst.cumulative_limit or worst.limit),
        calls=len(checks),
        elements=sum(check.elements for check in checks),
        tip=_tip(worst, len(checks)),
    )


def _badness(check: Check) -> tuple[int, float]:
    error = max(check.local or 0.0, check.cumulative or 0.0)
    size = error / check.limit if check.limit else error
    return (_WORST_LAST[check.verdict], math.inf if math.isnan(size) else size)


def heat(error: float | None, limit: float | None) -> Heat:
    """Colour and text for an error against its limit; both without a unit."""
    if error is None:
        return Heat(-1, "-")
    if error == 0:
        return Heat(0, "0")
    if not math.isfinite(error):
        return Heat(7, "nan" if math.isnan(error) else "inf")
    if not limit:
        return Heat(-1, f"{error:.0e}") if limit is None else Heat(7, f"{error:.0e}")
    ratio = error / limit
    level = sum(math.log10(ratio) > step for step in _STEPS)
    return Heat(level, _short(ratio))


def _short(ratio: float) -> str:
    """A ratio in at most five characters; what exceeds 1 never reads as 1 or less."""
    if ratio < 0.01:
        return "<.01"
    if ratio <= 1:
        return f"{math.floor(ratio * 100) / 100:.2f}".removeprefix("0")
    if ratio < 10:
        return f"{math.ceil(ratio * 10) / 10:.1f}"
    return f"{ratio:.0f}" if ratio < 1000 else f"{ratio:.0e}".replace("e+0", "e")


def _tip(check: Check, calls: int) -> str:
    facts = [
        f"{check.rung}, {check.mode}: {check.verdict.value}",
        f"{check.elements:,} elements compared",
        _number("local error", check.local),
        _number("cumulative error", check.cumulative),
        _number("torch's own float32 error", check.own),
        _number("limit", check.limit),
        f"worst of {calls} calls" if calls > 1 else "",
        check.detail,
    ]
    return "\n".join(fact for fact in facts if fact)


def _number(name: str, value: float | None) -> str:
    return "" if value is None else f"{name} {value:.3g}"


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
