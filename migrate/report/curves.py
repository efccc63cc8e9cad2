"""In: the losses of both sides. Out: what an inline SVG of them needs, and the same in words."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.result import Curve, ModelResult

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
