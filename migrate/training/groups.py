"""In: the marks of a function. Out: its training steps, or why a backward belongs to none.

A step is *fused* when every backward is followed, under the same conditions, by the update it is
for, and preceded by the zero_grad of what it updates: loss, gradient and update are then one
call. Otherwise it may be *accumulating*: one backward whose gradients are added up until some
condition applies them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrate.syntax.trees import dotted
from migrate.training.effects import blocks
from migrate.training.marks import Act, Mark, View


@dataclass(frozen=True)
class Group:
    """The marks of one training step.

    ``fused``: loss, gradient and update are one call. ``apart``: the gradients of each backward
    are fresh, but the update comes later. ``by_hand``: only the backward, its gradients stay with
    the weights (by_hand.py).
    """

    backwards: tuple[Mark, ...]
    between: tuple[Mark, ...]
    steps: tuple[Mark, ...]
    zeros: tuple[Mark, ...]
    fused: bool
    apart: bool = False
    by_hand: bool = False

    @property
    def optimizers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.who for m in self.steps))

    @property
    def scaler(self) -> str:
        return next((m.scaler for m in self.backwards), "")

    @property
    def marks(self) -> tuple[Mark, ...]:
        return (*self.backwards, *self.between, *self.steps, *self.zeros)

    def clips(self) -> tuple[Mark, ...]:
        return tuple(m for m in self.between if m.act in (Act.CLIP_NORM, Act.CLIP_VALUE))


@dataclass(frozen=True)
class Unclear:
    """A backward that is not converted, and why."""

    mark: Mark
    reason: str


def groups(view: View, found: Sequence[Mark]) -> list[Group | Unclear]:
    """The training steps of one function."""
    drafts = _drafts(found)
    made = [_group(view, found, d, drafts) for d in drafts if d.backwards]
    return _without_shared(found, made)


@dataclass
class _Draft:
    backwards: list[Mark]
    between: list[Mark]
    steps: list[Mark]


def _drafts(found: Sequence[Mark]) -> list[_Draft]:
    """Each step with the backwards before it; a backward after a step begins the next."""
    drafts = [_Draft([], [], [])]
    for mark in found:
        if mark.act is Act.BACKWARD:
            if drafts[-1].steps:
                drafts.append(_Draft([], [], []))
            drafts[-1].backwards.append(mark)
        elif mark.act is Act.STEP:
            drafts[-1].steps.append(mark)
        elif mark.act is not Act.ZERO:
            drafts[-1].between.append(mark)
    return drafts


def _group(
    view: View, found: Sequence[Mark], draft: _Draft, drafts: Sequence[_Draft]
) -> Group | Unclear:
    first = draft.backwards[0]
    reason = _odd(draft)
    if reason:
        return Unclear(first, reason)
    zeros = {m.who: _zeros(view, found, m.who) for m in draft.steps}
    same = all(m.on == first.on for m in (*draft.backwards, *draft.steps, *draft.between))
    every = tuple(dict.fromkeys(z for some in zeros.values() for z in some))
    made = Group(tuple(draft.backwards), tuple(draft.between), tuple(draft.steps), every, same)
    if same:
        fresh = _is_only_backward(view, first)
        late = [o for o, some in zeros.items() if not fresh and not _clean(found, draft, some)]
        order = {id(m): index for index, m in enumerate(found)}
        after = [z for z in every if order[id(first)] < order[id(z)] < order[id(draft.steps[-1])]]
        if after:
            return Unclear(first, f"line {after[0].statement.lineno} clears its gradients")
        if not late:
            return made
        reason = f"the gradients of {late[0]} are not set to zero before each backward"
    alone = len(draft.backwards) == 1 and len(made.optimizers) == 1
    others = [d for d in drafts if d is not draft and d.backwards]
    if not alone or others or not every:
        return Unclear(first, reason or "the update is not made under the same conditions")
    return Group(made.backwards, made.between, made.steps, every, False)


def _is_only_backward(view: View, mark: Mark) -> bool:
    """Return whether it runs once, and no other code of the process leaves gradients behind."""
    if mark.statement not in _run_once(view.file.source.tree.body):
        return False
    every = [a for f in view.neighbours for a in f.of(ast.Attribute)]
    stored = any(a.attr == "grad" and not isinstance(a.ctx, ast.Load) for a in every)
    return not stored and sum(a.attr == "backward" for a in every) == 1


def _run_once(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a module that no loop and no function repeats."""
    inner = (ast.If, ast.With, ast.Try)
    found = list(body)
    for item in body:
        if isinstance(item, inner):
            found += [s for block in blocks(item) for s in _run_once(block)]
    return found


def _odd(draft: _Draft) -> str:
    if not draft.steps:
        return "no optimizer.step() of the same function follows this backward()"
    for mark in draft.backwards:
        keywords = {k.arg for k in mark.call.keywords}
        create = [k for k in mark.call.keywords if k.arg == "create_graph"]
        if any(not isinstance(k.value, ast.Constant) or k.value.value for k in create):
            return "it builds a graph of the gradient itself (create_graph)"
        if mark.call.args or keywords - {"retain_graph", "create_graph"}:
            return "backward() is given a gradient or inputs"
    for mark in draft.steps:
        if not mark.scaler and (mark.call.args or mark.call.keywords):
            return "step() is given a closure, which computes the loss anew"
    if len({m.scaler for m in draft.backwards}) > 1:
        return "several gradient scalers take part"
    return ""


def _zeros(view: View, found: Sequence[Mark], optimizer: str) -> list[Mark]:
    """The statements that clear the gradients of an optimizer: its own, or its Modules'."""
    models = models_of(view, optimizer)
    return [
        m
        for m in found
        if m.act is Act.ZERO
        and (m.who == optimizer or (not view.is_optimizer_name(m.who) and _covers(m.who, models)))
    ]


def _covers(module: str, models: set[str]) -> bool:
    return not models or any(m == module or m.startswith(module + ".") for m in models)


_BUILT = (ast.Call, ast.List, ast.Tuple, ast.Dict)


def models_of(view: View, optimizer: str) -> set[str]:
    """The Modules whose ``parameters()`` an optimizer is built from; empty when not seen."""
    found: set[str] = set()
    for node in view.file.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, _BUILT):
            continue
        if optimizer not in {dotted(t) for t in node.targets}:
            continue
        for item in ast.walk(node.value):
            named = isinstance(item, ast.Attribute) and item.attr in (
                "parameters",
                "named_parameters",
            )
            if named and isinstance(item, ast.Attribute):
                found.add(dotted(item.value))
    return found - {""}


def _clean(found: Sequence[Mark], draft: _Draft, zeros: Sequence[Mark]) -> bool:
    """Whether on every way to the first backward these gradients were cleared last."""
    first = draft.backwards[0]
    loop = next((n for n in reversed(first.on) if isinstance(n, (ast.For, ast.While))), None)
    good = [z for z in zeros if z.on == first.on[: len(z.on)] and (loop is None or loop in z.on)]
    own = [m for m in found if loop is None or loop in m.on]
    start = own.index(first)
    before, after = own[:start], own[start:]
    for mark in [*reversed(before), *reversed(after)]:
        if mark in good:
            return True
        if mark.act is Act.BACKWARD and mark not in draft.backwards:
            return False
        if mark is first:
            return False
    return False


def _without_shared(
    found: Sequence[Mark], made: Sequence[Group | Unclear]
) -> list[Group | Unclear]:
    """Give each zero_grad to the step that follows it, of those whose gradients it clears."""
    order = {id(m.statement): index for index, m in enumerate(found)}
    starts = [order[id(g.backwards[0].statement)] if isinstance(g, Group) else 0 for g in made]
    serves: dict[int, int] = {}
    for mark in found:
        users = [i for i, g in enumerate(made) if isinstance(g, Group) and mark in g.zeros]
        later = [i for i in users if starts[i] > order[id(mark.statement)]]
        if users:
            serves.setdefault(id(mark.statement), (later or users)[0])
    return [
        replace(g, zeros=tuple(z for z in g.zeros if serves[id(z.statement)] == i))
        if isinstance(g, Group)
        else g
        for i, g in enumerate(made)
    ]
