"""In: a step whose update cannot follow its loss at once. Out: its region, loss and update apart.

What stands between loss and update may leave the round (``if not isfinite(loss): continue``), look
at the loss first, or use the Modules. Then a call of the step Cell gives the loss and keeps the
gradients, and ``update()`` stands where ``step()`` stood; everything between stays as it is. Left
out is only what stays unseen: gradients that no update uses.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from migrate.training.between import Between, at_weights
from migrate.training.effects import binds, changed, reads
from migrate.training.groups import Group, Unclear
from migrate.training.marks import Mark, View, block_of
from migrate.training.slices import (
    NOTHING,
    Region,
    before_update,
    behind,
    captured_names,
    left_halfway,
    sort_out,
    touched_by,
    writes_results,
)


def apart(view: View, group: Group, every: Sequence[Mark], own: str) -> Region | Unclear:
    """The region of a fused group (its gradients are cleared before each backward)."""
    first = group.backwards[0]
    losses = tuple(m.loss for m in group.backwards if m.loss is not None)
    place = _place(view, group)
    if place is None or len(losses) != 1:
        return Unclear(first, "several losses, or a backward far from where the loss is computed")
    block, index = place
    start = behind(group, every, block, index)
    candidates = _unmarked(group, block[start:index])
    inside = _needed(view, candidates, losses, own)
    if not inside:
        return Unclear(first, NOTHING)
    stop = candidates.index(inside[-1]) + 1
    between = candidates[candidates.index(inside[0]) : stop]
    cut = sort_out(view, inside, between, losses, touched_by(view, candidates, own), own)
    if isinstance(cut, str):
        return Unclear(first, cut)
    reason = before_update(view, group, block[:start], [*cut.inside, *losses], own)
    reason = reason or _disturbed(view, group, candidates[stop:], cut.inside, losses, own)
    if reason or left_halfway(cut.inside):
        return Unclear(first, reason or "the computation of the loss may be left halfway")
    return Region(
        replace(group, fused=False, apart=True),
        block,
        tuple(cut.inside),
        tuple(cut.moved),
        block.index(cut.inside[-1]),
        losses,
        captured=captured_names(cut, own),
    )


def _place(view: View, group: Group) -> tuple[list[ast.stmt], int] | None:
    """The block in which the loss is computed, and the index of what holds the backward."""
    item: ast.stmt = group.backwards[0].statement
    while True:
        block, parent = block_of(view, item)
        names = reads([m.loss for m in group.backwards if m.loss is not None])
        if names & {n for s in block[: block.index(item)] for n in binds([s])}:
            return block, block.index(item)
        if not isinstance(parent, ast.If):
            return None
        item = parent


def _unmarked(group: Group, items: list[ast.stmt]) -> list[ast.stmt]:
    marks = {id(m.statement) for m in group.marks}
    return [s for s in items if id(s) not in marks]


def _needed(
    view: View, items: list[ast.stmt], losses: Sequence[ast.expr], own: str
) -> list[ast.stmt]:
    """The statements that compute the loss from what a Module gives."""
    seen = touched_by(view, items, own)
    needed = reads(losses, own)
    inside: list[ast.stmt] = []
    for item in reversed(items):
        if binds([item], own) & needed and id(item) in seen:
            inside.insert(0, item)
            needed |= reads([item], own)
    return inside


def _disturbed(
    view: View,
    group: Group,
    later: list[ast.stmt],
    inside: list[ast.stmt],
    losses: Sequence[ast.expr],
    own: str,
) -> str:
    """What stands between loss and update must change neither the loss nor weights."""
    bound = binds(inside, own) & reads(losses, own)
    computed = Between(view, (*inside, *losses), own)
    for item in later:
        if writes_results(item, binds(inside, own)) or computed.changed_by(item):
            return f"line {item.lineno} may change what the gradients are computed from"
        if changed(item, own) & (bound | reads(losses, own)):
            return f"line {item.lineno} changes the loss before its backward()"
        if at_weights(view, item, writing=True):
            return f"line {item.lineno} changes weights between loss and update"
    step = group.steps[-1].statement
    block, _ = block_of(view, group.backwards[-1].statement)
    stop = block.index(step) if step in block else len(block)
    for item in block[block.index(group.backwards[-1].statement) : stop]:
        if any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(item)):
            return f"line {item.lineno} looks at gradients before the update"
    return ""
