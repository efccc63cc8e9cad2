"""In: what clips gradients in a training step. Out: the same as arguments of the train step."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.syntax.trees import dotted
from migrate.training.effects import reads
from migrate.training.groups import Group, Unclear, models_of
from migrate.training.marks import Act, Mark, View
from migrate.training.variables import Variables, changed_in


@dataclass(frozen=True)
class Clip:
    """``limits`` are (name, expression) pairs, ``chosen`` the weights where not all are clipped,
    ``when`` the condition; ``target`` is what the norm is bound to."""

    limits: tuple[tuple[str, ast.expr], ...]
    chosen: ast.expr | None
    when: ast.expr | None
    target: str

    def call(self, view: View) -> str:
        """The arguments of ``step.clip(...)``; the condition stands around it."""
        text = view.file.source.text_of
        given = [text(self.limits[0][1]), *(f"{k}={text(v)}" for k, v in self.limits[1:])]
        return ", ".join(given + ([f"clipped={text(self.chosen)}"] if self.chosen else []))

    def build(self, view: View) -> str:
        """The arguments of a train step that clips by itself, with a comma in front."""
        text = view.file.source.text_of
        given = []
        for index, (name, value) in enumerate(self.limits):
            unless = f" if {text(self.when)} else None" if self.when and not index else ""
            given.append(f"{name}={text(value)}{unless}")
        if self.chosen is not None:
            given.append(f"clipped={text(self.chosen)}")
        return "".join(f", {g}" for g in given)


def clip(view: View, group: Group, mark: Mark) -> Clip | Unclear:
    """What a clipping statement asks for."""
    if isinstance(mark.call.func, ast.Attribute) and mark.call.func.attr == "clamp_":
        limit, clipped = _symmetric(mark.call), _looped(mark.statement)
        limits = {"clip_value": limit} if limit is not None else {}
    else:
        names = ("clip_value",) if mark.act is Act.CLIP_VALUE else ("max_norm", "norm_type")
        limits = dict(zip(names, mark.call.args[1:], strict=False))
        limits |= {k.arg: k.value for k in mark.call.keywords if k.arg and k.arg in names}
        extra = {k.arg for k in mark.call.keywords} - {*names, "parameters", "foreach"}
        if extra or len(mark.call.args) > len(names) + 1 or names[0] not in limits:
            return Unclear(mark, f"its argument {sorted(map(str, extra))} has no counterpart")
        clipped = _parameters(mark.call)
    given = tuple(limits.items())
    if clipped is None or not given:
        return Unclear(mark, "which parameters it clips, and at what, is not said")
    target = ""
    if isinstance(mark.statement, ast.Assign):
        target = view.file.source.text_of(mark.statement.targets[0])
    return Clip(given, None if _all_of(view, group, clipped) else clipped, mark.when, target)


def clipping(
    view: View, group: Group, names: Variables, own: str
) -> tuple[str, tuple[str, ...]] | Unclear:
    """(arguments, names of results) of a train step that clips before each update."""
    marks = group.clips()
    if not marks:
        return "", ()
    if len(marks) > 1:
        return Unclear(marks[1], "gradients are clipped more than once")
    made = clip(view, group, marks[0])
    if isinstance(made, Unclear):
        return made
    asked = [v for _, v in made.limits] + ([made.when] if made.when else [])
    changing = changed_in(names.loop, own) if names.loop is not None else set()
    if reads(asked, own) & changing or (made.when and _calls(made.when)):
        return Unclear(marks[0], "the limit changes from step to step")
    if marks[0].act is Act.CLIP_VALUE and (group.scaler or len(group.optimizers) > 1):
        return Unclear(marks[0], "clipping by value goes with one plain optimizer only")
    return made.build(view), (made.target,) if made.target else ()


def settings(group: Group, own: str) -> set[str]:
    """The names from which clipping and scaling are set up."""
    found = reads([m.call for m in group.clips()], own)
    return found | reads([m.when for m in group.clips() if m.when], own)


def _calls(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def _symmetric(call: ast.Call) -> ast.expr | None:
    """v of ``clamp_(-v, v)``."""
    given = dict(zip(("min", "max"), call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    low, high = given.get("min"), given.get("max")
    if isinstance(low, ast.UnaryOp) and isinstance(low.op, ast.USub) and high is not None:
        return high if ast.dump(low.operand) == ast.dump(high) else None
    return None


def _looped(item: ast.stmt) -> ast.expr | None:
    return item.iter if isinstance(item, ast.For) else None


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
