"""In: a training step and its loss Cell. Out: the Cell that makes the step, its call."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.program import Function
from migrate.training.cells import LossCell
from migrate.training.effects import binds, dotted, reads
from migrate.training.groups import Group, Unclear, models_of
from migrate.training.marks import Act, Mark, View
from migrate.training.variables import Variables, changed_in


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
) -> Step | Unclear:
    """Which train step does it, with what it is built from."""
    optimizer = group.optimizers[0]
    clips = group.clips()
    aux = ", has_aux=True" if len(cell.results) > 1 else ""
    if not group.fused:
        if group.scaler:
            return Unclear(group.backwards[0], "scaled gradients are added up")
        aux += ", carried=True" if carried else ""
        return Step(f"{module}.AccumulatingTrainStep({cell.build}, {optimizer}{aux})")
    if len(clips) > 1:
        return Unclear(clips[1], "gradients are clipped more than once")
    given = _clipping(view, group, clips, names, own)
    if isinstance(given, Unclear):
        return given
    results = tuple(_target(view, c) for c in clips if isinstance(c.statement, ast.Assign))
    given += aux + (", returns_norm=True" if results else "")
    if len(group.optimizers) > 1:
        if group.scaler:
            return Unclear(group.steps[0], "one gradient scaler serves several optimizers")
        every = ", ".join(group.optimizers)
        return Step(f"{module}.JointTrainStep({cell.build}, [{every}]{given})", results)
    if group.scaler:
        name = f"{module}.ScaledTrainStep({cell.build}, {optimizer}, {group.scaler}"
        return Step(f"{name}{given})", results)
    if clips and clips[0].act is Act.CLIP_VALUE:
        return Step(f"{module}.ValueClippedTrainStep({cell.build}, {optimizer}{given})")
    if clips:
        return Step(f"{module}.ClippedTrainStep({cell.build}, {optimizer}{given})", results)
    name = "TrainOneStep" if aux else "TrainOneStepCell"
    return Step(f"{module}.{name}({cell.build}, {optimizer})")


def carries(group: Group, loop: ast.stmt | None, function: Function | None) -> bool | Unclear:
    """Whether gradients may be left from an earlier call of the function.

    The optimizer comes from elsewhere, and nothing clears its gradients right before the loop.
    """
    if group.fused or function is None or not isinstance(function.node.body, list):
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


def _clipping(
    view: View, group: Group, clips: tuple[Mark, ...], names: Variables, own: str
) -> str | Unclear:
    """The arguments of the clipping as text that begins with a comma."""
    if not clips:
        return ""
    call = clips[0].call
    by_value = clips[0].act is Act.CLIP_VALUE
    allowed = ("clip_value",) if by_value else ("max_norm", "norm_type")
    given = dict(zip(allowed, call.args[1:], strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg and k.arg in allowed}
    extra = {k.arg for k in call.keywords} - {*allowed, "parameters", "foreach"}
    if extra or len(call.args) > len(allowed) + 1 or allowed[0] not in given:
        return Unclear(clips[0], f"its argument {sorted(map(str, extra))} has no counterpart")
    changing = changed_in(names.loop, own) if names.loop is not None else set()
    if reads(given.values(), own) & changing:
        return Unclear(clips[0], "the limit changes from step to step")
    text = "".join(f", {k}={view.file.source.text_of(v)}" for k, v in given.items())
    if by_value and (group.scaler or len(group.optimizers) > 1):
        return Unclear(clips[0], "clipping by value goes with one plain optimizer only")
    clipped = _parameters(call)
    if clipped is None:
        return Unclear(clips[0], "which parameters it clips is not said")
    if not _all_of(view, group, clipped):
        text += f", clipped={view.file.source.text_of(clipped)}"
    return text


def _parameters(call: ast.Call) -> ast.expr | None:
    named = next((k.value for k in call.keywords if k.arg == "parameters"), None)
    return call.args[0] if call.args else named


def _all_of(view: View, group: Group, clipped: ast.expr) -> bool:
    """Whether ``model.parameters()`` is what the optimizers were built from."""
    if not isinstance(clipped, ast.Call) or not isinstance(clipped.func, ast.Attribute):
        return False
    if clipped.func.attr != "parameters":
        return False
    known = {m for o in group.optimizers for m in models_of(view, o)}
    return known <= {dotted(clipped.func.value)}


def _target(view: View, clip: Mark) -> str:
    assert isinstance(clip.statement, ast.Assign)
    return view.file.source.text_of(clip.statement.targets[0])
