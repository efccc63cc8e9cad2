"""Gather what the page shows of each verified model: map, details, curves, checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate.records.outcomes import Verdict
from migrate.records.result import Curve, ModelResult, Record, Rung, Verification
from migrate.report.diff import texts
from migrate.report.heatmap import CellRow, Drill, HeatMap, Lines, drill, heat_map

WIDTH, HEIGHT = 600, 180
LEFT, RIGHT, TOP, BOTTOM = 70, 12, 12, 24


@dataclass(frozen=True)
class Plot:
    """One mode: points of both lines in the SVG, labels of the axes, the numbers, and ``said``."""

    mode: str
    torch: str
    mindspore: str
    most: str
    least: str
    steps: int
    rows: tuple[tuple[int, str, str, str], ...]
    said: str


def plots(model: ModelResult) -> tuple[Plot, ...]:
    """One plot for each mode in which the model was trained."""
    return tuple(_plot(rung.mode, rung.curve) for rung in model.rungs if rung.curve)


def _plot(mode: str, curve: Curve) -> Plot:
    values = (*curve.torch, *curve.mindspore)
    most, least = max(values), min(values)
    pairs = list(zip(curve.torch, curve.mindspore, strict=True))
    gaps = [abs(one - other) for one, other in pairs]
    rows = tuple(
        (number, f"{one:.7g}", f"{other:.7g}", f"{gap:.1e}" if gap else "0")
        for number, ((one, other), gap) in enumerate(zip(pairs, gaps, strict=True), 1)
    )
    said = (
        f"Losses of {len(pairs)} steps, {mode}: torch from {curve.torch[0]:.4g} to "
        f"{curve.torch[-1]:.4g}, MindSpore from {curve.mindspore[0]:.4g} to "
        f"{curve.mindspore[-1]:.4g}; largest gap {max(gaps):.1e}"
    )
    return Plot(
        mode=mode, torch=_line(curve.torch, most, least), said=said, rows=rows, steps=len(pairs),
        mindspore=_line(curve.mindspore, most, least), most=f"{most:.4g}", least=f"{least:.4g}",
    )  # fmt: skip


def _line(values: tuple[float, ...], most: float, least: float) -> str:
    """Points from left to right; a single step is drawn as a line across."""
    drawn = values * 2 if len(values) == 1 else values
    across = (WIDTH - LEFT - RIGHT) / (len(drawn) - 1)
    height = HEIGHT - TOP - BOTTOM
    span = (most - least) or 1.0
    return " ".join(
        f"{LEFT + number * across:.1f},{TOP + (most - value) / span * height:.1f}"
        for number, value in enumerate(drawn)
    )


CHECKPOINT = "checkpoint"
MOST = 1000
NONE = "no partner by design"


@dataclass(frozen=True)
class TensorRow:
    """``verdict`` is None where nothing had to come back; ``text`` says why, or what is wrong."""

    torch: str
    mindspore: str
    shape: str
    layout: str
    verdict: Verdict | None
    text: str


@dataclass(frozen=True)
class Tensors:
    """All rows, those with a fault first; ``back`` of ``sent`` tensors came back bit by bit."""

    rows: tuple[TensorRow, ...]
    sent: int
    back: int
    note: str

    @property
    def fine(self) -> bool:
        return not self.note and self.sent == self.back


def tensors(model: ModelResult) -> Tensors:
    """The rows in torch's order, those that did not come back in front."""
    rung = next((rung for rung in model.rungs if rung.name == CHECKPOINT), None)
    names = dict.fromkeys((*model.weight_names, *(rung.faults if rung else ())))
    rows = [_row(model, key, rung) for key in names]
    bad = [row for row in rows if row.verdict not in (None, Verdict.PASS)]
    fine = [row for row in rows if row.verdict in (None, Verdict.PASS)]
    sent = sum(row.verdict is not None for row in rows)
    return Tensors((*bad, *fine), sent, sent - len(bad), _note(rung))


def _note(rung: Rung | None) -> str:
    if rung is None:
        return "the round trip was not made"
    if rung.verdict in (Verdict.NOT_RUN, Verdict.BLOCKED):
        return rung.detail or "the round trip was not made"
    return ""


def _row(model: ModelResult, key: str, rung: Rung | None) -> TensorRow:
    name = model.weight_names.get(key, "")
    shape = model.weight_shapes.get(key)
    fault = rung.faults.get(key, "") if rung else ""
    if fault:
        verdict = Verdict.DIVERGED if name else Verdict.UNMATCHED
    elif not name or rung is None or _note(rung):
        verdict = None
    else:
        verdict = Verdict.PASS
    return TensorRow(
        torch=key, mindspore=name, shape="?" if shape is None else _shape(shape),
        layout=model.weight_layouts.get(key, ""), verdict=verdict,
        text=fault or ("" if name else NONE),
    )  # fmt: skip


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "scalar"


# How many squares, comparisons and tensors a page shows, of all models together: ResNet-50 with
# training in both modes has 1,533 comparisons. Beside each, the bytes that one takes.
SQUARES, SQUARE_COST = 1_700, 300
FACTS, FACT_COST = 1_700, 480
TENSORS, TENSOR_COST = 1_000, 170


@dataclass(frozen=True)
class ModelView:
    """A verified model; ``hidden`` rows that are fine were left out for size.

    ``drills`` has one entry for each row of the map, None where there was no room for it.
    """

    model: ModelResult
    map: HeatMap
    hidden: int
    drills: tuple[Drill | None, ...]
    plots: tuple[Plot, ...]
    tensors: Tensors
    shown: int


def model_views(
    record: Record, verification: Verification | None, source_root: Path, output_root: Path
) -> Iterator[ModelView]:
    """The models in the order of the verification; the first ones get the room there is."""
    models = verification.models if verification else ()
    lines = _lines(record, models, source_root, output_root)
    squares, facts, left = SQUARES, FACTS, TENSORS
    for model in models:
        heat = heat_map(model)
        hidden: list[CellRow] = []
        if _squares(heat) > squares:
            hidden = [row for row in heat.rows if row.fine]
            heat = replace(heat, rows=tuple(row for row in heat.rows if not row.fine))
        squares -= _squares(heat)
        drills = _drills(heat, lines, facts)
        facts -= sum(len(one.facts) for one in drills if one)
        held = tensors(model)
        shown = max(0, min(len(held.rows), MOST, left))
        left -= shown
        yield ModelView(model, heat, len(hidden), drills, plots(model), held, shown)


def _squares(heat: HeatMap) -> int:
    return sum(square is not None for row in heat.rows for square in row.squares)


def size(views: Sequence[ModelView]) -> int:
    """About how many bytes of the page the models take."""
    return sum(
        SQUARE_COST * _squares(view.map)
        + FACT_COST * sum(len(one.facts) for one in view.drills if one)
        + TENSOR_COST * view.shown
        for view in views
    )


def _drills(heat: HeatMap, lines: Mapping[str, Lines], room: int) -> tuple[Drill | None, ...]:
    """What opens below each row; where there is little room, below those that are not fine."""
    tight = sum(len(row.checks) for row in heat.rows) > room
    found: list[Drill | None] = []
    for row in heat.rows:
        if len(row.checks) > room or not row.checks or (tight and row.fine):
            found.append(None)
            continue
        room -= len(row.checks)
        found.append(drill(row.checks, lines))
    return tuple(found)


def _lines(
    record: Record, models: tuple[ModelResult, ...], source_root: Path, output_root: Path
) -> dict[str, Lines]:
    """Both texts of every file in which a module was built, by its source."""
    wanted = {check.source for model in models for check in model.checks if check.source}
    found = {}
    for file in record.files:
        if file.source in wanted and file.status == "converted":
            read = texts(file, source_root, output_root)
            found[file.source] = Lines(
                file.source, file.output, read.before.splitlines(), read.after.splitlines()
            )
    return found
