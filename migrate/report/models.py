"""In: a verification, both trees. Out: for each model what the page shows: map, details, curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate.report.curves import Plot, plots
from migrate.report.drill import Drill, Lines, drill
from migrate.report.heatmap import CellRow, HeatMap, heat_map
from migrate.report.sources import texts
from migrate.report.tensors import MOST, Tensors, tensors
from migrate.result import ModelResult, Record, Verification

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
