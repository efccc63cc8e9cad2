"""In: a training step and its loss Cell. Out: the Cell that makes the step, its call."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from migrate.analysis.program import Function
from migrate.training.cells import LossCell
from migrate.training.clips import clip, clipping
from migrate.training.effects import binds
from migrate.training.groups import Group, Unclear
from migrate.training.marks import Act, View
from migrate.training.variables import Variables


@dataclass(frozen=True)
class Step:
    """``build`` makes the train step; ``results`` what a call gives behind the loss's own."""

    build: str
    results: tuple[str, ...] = ()


def step(
    view: View,
    group: Group,
    cell: LossCell,
    names: Variables,
    own: str,
    module: str,
    carried: bool = False,
    hidden: Sequence[str] = (),
    numbers: bool = False,
) -> Step | Unclear:
    """Which train step does it, with what it is built from; ``numbers``: it is given some."""
    if group.by_hand:
        return _backward(cell, module, hidden, group.scaler)
    optimizer = _optimizers(view, group)
    aux = ", has_aux=True" if len(cell.results) > 1 else ""
    if not group.fused:
        return _accumulating(view, group, f"{cell.build}, {optimizer}", module, aux, carried)
    clipped = clipping(view, group, names, own)
    if isinstance(clipped, Unclear):
        return clipped
    given, results = clipped
    given += aux + (", returns_norm=True" if results else "")
    if _several(group):
        if group.scaler:
            return Unclear(group.steps[0], "one gradient scaler serves several optimizers")
        return Step(f"{module}.JointTrainStep({cell.build}, {optimizer}{given})", results)
    if group.scaler:
        name = f"{module}.ScaledTrainStep({cell.build}, {optimizer}, {group.scaler}"
        return Step(f"{name}{given})", results)
    if group.clips() and group.clips()[0].act is Act.CLIP_VALUE:
        return Step(f"{module}.ValueClippedTrainStep({cell.build}, {optimizer}{given})")
    if group.clips():
        return Step(f"{module}.ClippedTrainStep({cell.build}, {optimizer}{given})", results)
    name = "TrainOneStep" if aux or numbers else "TrainOneStepCell"
    alone = ", has_aux=False" if numbers and not aux else ""
    return Step(f"{module}.{name}({cell.build}, {optimizer}{alone})")


def _backward(cell: LossCell, module: str, hidden: Sequence[str], scaler: str) -> Step:
    """The gradients stay with the weights: those that the Cell holds, and of ``hidden`` Modules."""
    given = [cell.build, *hidden, *(["has_aux=True"] if len(cell.results) > 1 else [])]
    given += [f"scaler={scaler}"] if scaler else []
    return Step(f"{module}.BackwardNet({', '.join(given)})")


def _accumulating(
    view: View, group: Group, given: str, module: str, aux: str, carried: bool
) -> Step | Unclear:
    """The step of a loop that adds up the gradients of several batches."""
    if _several(group):
        return Unclear(group.steps[0], "gradients of several optimizers are added up")
    for made in (clip(view, group, m) for m in group.clips()):
        if isinstance(made, Unclear):
            return made
    kept = ", carried=True" if carried else ""
    if group.scaler:
        return Step(f"{module}.ScaledAccumulatingTrainStep({given}, {group.scaler}{kept})")
    return Step(f"{module}.AccumulatingTrainStep({given}{aux}{kept})")


def _several(group: Group) -> bool:
    return len(group.optimizers) > 1 or any(m.every for m in group.steps)


def _optimizers(view: View, group: Group) -> str:
    """The optimizer, or the list of them: ``optimizers``, ``list(optimizers.values())``."""
    if not _several(group):
        return group.optimizers[0]
    if len(group.steps) > 1 or group.steps[0].every is None:
        single = [view.file.source.text_of(m.every) if m.every else m.who for m in group.steps]
        starred = [f"*{t}" if m.every else t for m, t in zip(group.steps, single, strict=True)]
        return f"[{', '.join(dict.fromkeys(starred))}]"
    text = view.file.source.text_of(group.steps[0].every)
    return text if isinstance(group.steps[0].every, (ast.Name, ast.Attribute)) else f"list({text})"


def carries(group: Group, loop: ast.stmt | None, function: Function | None) -> bool | Unclear:
    """Whether gradients may be left from an earlier call of the function.

    The optimizer comes from elsewhere, and nothing clears its gradients right before the loop.
    """
    if (
        group.fused
        or group.apart
        or group.by_hand
        or function is None
        or not isinstance(function.node.body, list)
    ):
        return False
    if set(group.optimizers) & binds(function.node.body):
        return False
    around = group.backwards[0].on
    before = around[: around.index(loop)] if loop in around else around
    line = loop.lineno if loop is not None else group.backwards[0].statement.lineno
    early = [z for z in group.zeros if z.statement.lineno < line]
    if any(z.on == before for z in early):
        return False
    if early:
        return Unclear(early[0], "gradients that may be left over are cleared only sometimes")
    return True
