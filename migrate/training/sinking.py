"""Bring the losses of several steps, all computed in front of the first, down to their own steps.

``q1_loss = f(q1(x)); q2_loss = f(q2(x))`` and then both updates: a step takes in its own loss, and
may not take in what another network computes between. Where the updates that a loss passes on its
way down change no network behind it, and nobody reads it before, the numbers are the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from migrate.records.outcomes import Edit, Span
from migrate.sites.references import draws
from migrate.syntax.lines import above, indent_of, next_line, shares_line
from migrate.syntax.trees import last_name
from migrate.training import freezing
from migrate.training.effects import binds, changed, leaves, reads
from migrate.training.groups import Group, groups, models_of
from migrate.training.lines import edit
from migrate.training.marks import Mark, View, block_of, bodies, marks
from migrate.training.modules import models
from migrate.training.slices import behind, touched_by


def sunk(view: View) -> list[Edit]:
    """Return the changes that bring losses down to their steps."""
    found: list[Edit] = []
    for function, body in bodies(view):
        every = marks(view, body)
        made = groups(view, every)
        owner = function.owner if function is not None else None
        own = function.parameters[0].arg if owner and function and function.parameters else "-"
        for first, later in _rows(view, made):
            found += _lowered(view, every, first, later, own)
    return found


def _rows(view: View, made: Sequence[object]) -> Iterator[tuple[Group, list[Group]]]:
    """Yield the first and the other steps that stand in one block behind each other."""
    rows: dict[int, list[Group]] = {}
    for group in made:
        if isinstance(group, Group) and len(group.backwards) == 1 and group.backwards[0].loss:
            block, _ = block_of(view, group.backwards[0].statement)
            if all(m.statement in block for m in (*group.backwards, *group.steps)):
                rows.setdefault(id(block), []).append(group)
    for first, *others in rows.values():
        if others:
            yield first, others


def _lowered(
    view: View, every: Sequence[Mark], first: Group, later: list[Group], own: str
) -> Iterator[Edit]:
    source = view.file.source
    block, _ = block_of(view, first.backwards[0].statement)
    start = block.index(first.backwards[0].statement)
    marked = {id(m.statement) for m in every}
    front = [s for s in block[behind(first, every, block, start) : start] if id(s) not in marked]
    crossed, gone = [first], list[ast.stmt]()
    for group in later:
        ends = [block.index(m.statement) for m in crossed[-1].steps]
        own_marks = [i for m in group.marks if (i := _index(block, m)) > max(ends)]
        place = block[min(own_marks)]
        passed = block[start : min(own_marks)]
        items = _slice(view, front, [*passed, *gone], group, own)
        updated = [models_of(view, o) for g in crossed for o in g.optimizers]
        if (
            items
            and all(updated)
            and _may_sink(view, items, passed, set().union(*updated), marked, own)
        ):
            margin = indent_of(source, place)
            text = "".join(f"{margin}{source.text_of(s)}\n" for s in items)
            there = above(source, place)
            yield edit(source, Span(there, there), (text,))
            for item in items:
                begin = source.span(item).start - len(indent_of(source, item).encode())
                yield edit(source, Span(begin, next_line(source, source.span(item).end)), ())
            front = [s for s in front if s not in items]
            gone += items
        crossed.append(group)


def _index(block: list[ast.stmt], mark: Mark) -> int:
    return block.index(mark.statement) if mark.statement in block else -1


def _slice(
    view: View, front: list[ast.stmt], later: list[ast.stmt], group: Group, own: str
) -> list[ast.stmt]:
    """Return what computes the loss of a step alone; what others read as well stays."""
    losses = [m.loss for m in group.backwards if m.loss is not None]
    touched = touched_by(view, front, own)
    while True:
        needed, found = reads(losses, own), list[ast.stmt]()
        for item in reversed(front):
            if id(item) in touched and binds([item], own) & needed:
                found.insert(0, item)
                needed |= reads([item], own)
        others = [s for s in front if s not in found]
        shared = [s for s in found if binds([s], own) & reads([*others, *later], own)]
        if not shared:
            return found
        touched -= {id(s) for s in shared}


def _may_sink(
    view: View,
    items: list[ast.stmt],
    passed: list[ast.stmt],
    updated: set[str],
    marked: set[int],
    own: str,
) -> bool:
    """Return whether statements give the same behind others that update some Modules."""
    source, used = view.file.source, models(view, items, own)
    plain = all(
        isinstance(s, ast.Assign)
        and all(isinstance(t, ast.Name) for t in s.targets)
        and not shares_line(source, s)
        and not leaves(s)
        for s in items
    )
    between = view.file.function_at(items[0])
    body, _ = block_of(view, items[0])
    over = [s for s in body[body.index(items[0]) : body.index(passed[-1]) + 1] if s not in items]
    same = any(a == b or _inside(a, b) or _inside(b, a) for a in used for b in updated)
    if not plain or not used or same or between is None:
        return False
    return not (
        any(
            (changed(s, own) | binds([s], own)) & (reads([item], own) | binds([item], own))
            for item in items
            for s in over[sum(o.lineno < item.lineno for o in over) :]
        )
        or any(leaves(s) for s in over)
        or used & models(view, [s for s in over if id(s) not in marked], own)
        or any(freezing.of(view).handles_weights(view, s) for s in over if id(s) not in marked)
        or _draw(view, items)
    )


def _inside(part: str, whole: str) -> bool:
    return part.startswith(f"{whole}.")


def _draw(view: View, items: list[ast.stmt]) -> bool:
    """Return whether statements draw random numbers, or call a class that may."""
    classes = {c.name: c.node for f in view.neighbours for c in f.classes.values()}
    waiting: list[ast.AST] = [*items]
    for call in (n for s in items for n in ast.walk(s) if isinstance(n, ast.Call)):
        func = call.func
        while isinstance(func, ast.Attribute) and view.atoms(func) != {"Module"}:
            func = func.value
        kinds = view.kind(func)
        if "unknown" in {a.kind for a in kinds}:
            return True
        made = [a.name for a in kinds if a.kind == "Module"]
        waiting += [c.node for n in made if (c := view.inference.class_of(n)) is not None]
        waiting += [ast.Name(n.rpartition(".")[2]) for n in made if "::" not in n]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if any(draws(n) for n in ast.walk(node)):
            return True
        named = {last_name(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}
        waiting += [classes[n] for n in named if n in classes]
    return False
