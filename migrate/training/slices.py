"""In: a training step's marks. Out: the statements that compute its loss, and what moves around it.

Going back from the loss, a statement belongs to it when it binds a name that is needed and comes
from a Module. What the loss needs but no Module has touched (the batch, the labels) stays where
it is and becomes an input; what uses results of the Module but is not needed moves behind the
step. Where that order could be seen, the step is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from migrate.training import freezing
from migrate.training.earlier import before_update, constants, made_again
from migrate.training.effects import binds, blocks, changed, dotted, leaves, reads
from migrate.training.given_away import looks_through
from migrate.training.groups import Group, Unclear
from migrate.training.marks import Act, Mark, View
from migrate.training.modules import from_model, models, quiet

NOTHING = "nothing in front of it calls a Module on the way to the loss"
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Try)


@dataclass(frozen=True)
class Region:
    """Where a training step stands in its block.

    ``inside`` compute the loss, ``moved`` come behind the step, ``condition`` is the ``if`` that
    holds the backward when the loss is computed in front of it. ``captured`` maps a statement
    that moves and a name to the number of the binding that it reads. ``again`` stand in front of
    an earlier step and are made again inside.
    """

    group: Group
    block: list[ast.stmt]
    inside: tuple[ast.stmt, ...]
    moved: tuple[ast.stmt, ...]
    last: int
    losses: tuple[ast.expr, ...]
    condition: ast.If | None = None
    captured: tuple[tuple[ast.stmt, str, ast.stmt], ...] = ()
    again: tuple[ast.Assign, ...] = ()


@dataclass
class Cut:
    """``before`` are the statements in front of the first that computes the loss."""

    inside: list[ast.stmt] = field(default_factory=list)
    moved: list[ast.stmt] = field(default_factory=list)
    stays: list[ast.stmt] = field(default_factory=list)
    before: list[ast.stmt] = field(default_factory=list)


def region(view: View, group: Group, every: Sequence[Mark], own: str) -> Region | Unclear:
    """The statements of a training step."""
    first, last = group.backwards[0], group.backwards[-1]
    block, container = block_of(view, first.statement)
    if last.statement not in block:
        return Unclear(first, "its backward() calls stand in different blocks")
    losses = tuple(m.loss for m in group.backwards if m.loss is not None)
    index, condition = block.index(last.statement), None
    if (
        isinstance(container, ast.If)
        and block is container.body
        and not from_model(view, block, index, losses, own)
    ):
        condition = container
        block, _ = block_of(view, container)
        index = block.index(container)
    start = behind(group, every, block, index)
    cut = cut_off(view, group, block[start:index], losses, own)
    if isinstance(cut, str):
        return Unclear(first, cut)
    nodes = [*cut.inside, *losses]
    reason = before_update(view, group, [*block[:start], *cut.before], nodes, own)
    again = (
        made_again(view, group, every, (block[:start], block[start:index]), nodes, own)
        if reason
        else ()
    )
    if reason and not again:
        return Unclear(first, reason)
    if condition is not None and reads([condition.test], own) & binds(cut.inside, own):
        return Unclear(first, "the condition of its update reads what the loss is made from")
    reason = _tail(view, group, own)
    if reason:
        return Unclear(first, reason)
    captured = captured_names(cut, own)
    return Region(
        group, block, tuple(cut.inside), tuple(cut.moved), index, losses, condition, captured, again
    )


def block_of(view: View, item: ast.stmt) -> tuple[list[ast.stmt], ast.AST]:
    """The list that holds a statement, and the statement (or module) that holds the list."""
    parent = view.file.parents[id(item)]
    while not any(item in b for b in blocks(parent)):
        parent = view.file.parents[id(parent)]
    return next(b for b in blocks(parent) if item in b), parent


# -- the step before ---------------------------------------------------------------------------


def behind(group: Group, every: Sequence[Mark], block: list[ast.stmt], end: int) -> int:
    """Where the block is this step's own: behind the last update of another step."""
    own = {id(m.statement) for m in group.marks}
    others = {id(m.statement) for m in every if id(m.statement) not in own}
    held = [i for i, s in enumerate(block[:end]) if any(id(n) in others for n in ast.walk(s))]
    zeros = {id(m.statement) for m in every if m.act is Act.ZERO}
    held = [i for i in held if id(block[i]) not in zeros]
    return held[-1] + 1 if held else 0


# -- cutting ----------------------------------------------------------------------------------


def cut_off(
    view: View,
    group: Group,
    items: list[ast.stmt],
    losses: tuple[ast.expr, ...],
    own: str,
) -> Cut | str:
    """Sort the statements in front of a backward."""
    marks = {id(m.statement) for m in group.marks}
    candidates = [s for s in items if id(s) not in marks]
    touched = touched_by(view, candidates, own)
    needed = reads(losses, own)
    inside: list[ast.stmt] = []
    for item in reversed(candidates):
        if binds([item], own) & needed and id(item) in touched:
            if constants(view, group, item, [*inside, *losses], own):
                touched.discard(id(item))
                continue
            inside.insert(0, item)
            needed |= reads([item], own)
    if not inside and not models(view, losses, own):
        return NOTHING
    after = candidates[candidates.index(inside[0]) :] if inside else []
    found = sort_out(view, inside, after, losses, touched, own)
    if isinstance(found, str):
        return found
    found.before = [s for s in candidates if s not in after]
    gone = next((s for s in found.moved if leaves(s)), None)
    if gone is not None:
        return f"line {gone.lineno} may leave before the update, depending on the loss"
    odd = [n for s in found.inside for n in ast.walk(s) if isinstance(n, _LEAVES)]
    if odd:
        return f"line {getattr(odd[0], 'lineno', '')} leaves the computation of the loss"
    return found


def touched_by(view: View, items: list[ast.stmt], own: str) -> set[int]:
    """The statements whose results come from a Module."""
    names: set[str] = set()
    found: set[int] = set()
    for item in items:
        from_model = not quiet(view, item) and bool(models(view, [item], own) - _switched(item))
        if from_model or reads([item], own) & names:
            found.add(id(item))
            names |= binds([item], own)
        else:
            names -= binds([item], own)
    return found


def _switched(item: ast.stmt) -> set[str]:
    """``model.train()`` touches a Module, but computes nothing."""
    if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
        func = item.value.func
        if isinstance(func, ast.Attribute) and func.attr in ("train", "eval", "zero_grad"):
            return {dotted(func.value)}
    return set()


def sort_out(
    view: View,
    inside: list[ast.stmt],
    after: list[ast.stmt],
    losses: tuple[ast.expr, ...],
    touched: set[int],
    own: str,
) -> Cut | str:
    """Which of the statements between belong inside, which move, which stay."""
    found = Cut()
    for item in after:
        before = [*found.inside]
        if item in inside:
            found.inside.append(item)
            continue
        if looks_through(view, item, own, binds([*before, *found.moved], own)):
            return f"line {item.lineno} may read what {own} holds of the loss before its update"
        if freezing.of(view).handles_weights(view, item):
            return f"line {item.lineno} may look at gradients or weights before the update"
        uses_results = reads([item], own) & (binds(before, own) | binds(found.moved, own))
        if uses_results or id(item) in touched:
            if models(view, [item], own):
                return f"line {item.lineno} uses the Module between loss and update"
            found.moved.append(item)
        elif changed(item, own) & (reads(before, own) | binds(before, own)):
            rest = [*(s for s in inside if s.lineno > item.lineno), *losses]
            needed = changed(item, own) & (reads(rest, own) | binds(before, own))
            (found.inside if needed else found.moved).append(item)
        elif changed(item, own) & reads(found.moved, own):
            return f"line {item.lineno} changes what line {found.moved[0].lineno} reads"
        else:
            found.stays.append(item)
    return found


def _tail(view: View, group: Group, own: str) -> str:
    """What stands between the backward and the update must not look at gradients or weights."""
    if group.by_hand:
        return ""
    marks = {id(m.statement) for m in group.marks}
    block, _ = block_of(view, group.backwards[-1].statement)
    step = group.steps[-1].statement
    if step not in block:
        return ""
    start, stop = block.index(group.backwards[-1].statement), block.index(step)
    for item in block[start:stop]:
        if id(item) in marks:
            continue
        gradient = any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(item))
        handles = freezing.of(view).handles_weights(view, item)
        if gradient or handles or models(view, [item], own):
            return f"line {item.lineno} looks at gradients or weights before the update"
    return ""


def captured_names(cut: Cut, own: str) -> tuple[tuple[ast.stmt, str, ast.stmt], ...]:
    """(statement that moves, name, the binding it reads) where the name is bound again later."""
    found = []
    for item in cut.moved:
        for name in sorted(reads([item], own)):
            binding = [s for s in cut.inside if name in binds([s], own)]
            earlier = [s for s in binding if s.lineno < item.lineno]
            if earlier and len(earlier) < len(binding):
                found.append((item, name, earlier[-1]))
    return tuple(found)
