"""In: what stands in front of another step of the same round. Out: whether a step may build on it.

A generator's images are made once and used by two steps. Where the second step updates what made
them, it makes them again inside of its own Cell: nothing has changed the weights in between, and
the first making leaves moving statistics alone. What draws random numbers cannot be made again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from migrate.training.connected import connected
from migrate.training.effects import binds, blocks, changed, dotted, reads, uses
from migrate.training.groups import Group, models_of
from migrate.training.marks import Act, Mark, View
from migrate.training.modules import models, quiet

_DRAWING = {"bernoulli", "rand_like", "randn_like", "randn", "rand", "normal_", "gumbel_softmax"}


def before_update(
    view: View, group: Group, items: list[ast.stmt], nodes: Sequence[ast.AST], own: str
) -> str:
    """Results of an earlier step come in as constants: no weight updated here may be behind."""
    origins: dict[str, set[str]] = {}
    for item in items:
        found = set() if quiet(view, item) else models(view, [item], own)
        for name in reads([item], own):
            found |= origins.get(name, set())
        kept = bool(list(blocks(item)))  # a branch or loop may bind it, or not
        for name in binds([item], own):
            origins[name] = found | (origins.get(name, set()) if kept else set())
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    for use in (u for n in nodes for u in uses(n, own)):
        parent = view.file.parents.get(id(use.node))
        if isinstance(parent, ast.Attribute) and parent.attr in ("detach", "data"):
            continue
        if origins.get(use.name, set()) & updated or (origins.get(use.name) and not updated):
            return f"{use.name} was computed before another update, by weights updated here"
    return ""


def made_again(
    view: View,
    group: Group,
    every: Sequence[Mark],
    around: tuple[list[ast.stmt], list[ast.stmt]],
    nodes: Sequence[ast.AST],
    own: str,
) -> tuple[ast.Assign, ...]:
    """The statements ``fake = netG(noise)`` in front that the step can make again; () if not.

    ``around`` are the statements up to the step before, and those from there to the backward.
    """
    items, rest = around
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    needed = reads(nodes, own)
    found: list[ast.Assign] = []
    for item in reversed(items):
        bound = binds([item], own)
        if bound & needed and models(view, [item], own) & updated:
            if not _remakes(view, item, updated) or not isinstance(item, ast.Assign):
                return ()
            later = [*items[items.index(item) + 1 :], *rest]
            if any(changed(s, own) & (reads([item], own) | bound) for s in later):
                return ()
            found.insert(0, item)
        needed -= bound
    if not found or _draws(view) or _others(view, group, every) & updated:
        return ()
    others = [s for s in items if s not in found]
    return () if before_update(view, group, others, [*found, *nodes], own) else tuple(found)


def _remakes(view: View, item: ast.stmt, updated: set[str]) -> bool:
    """``name = module(inputs)``."""
    if not isinstance(item, ast.Assign) or len(item.targets) != 1:
        return False
    call = item.value
    named = isinstance(item.targets[0], ast.Name) or bool(dotted(item.targets[0]))
    if not isinstance(call, ast.Call) or call.keywords or not named:
        return False
    nested = any(isinstance(n, (ast.Call, ast.Starred)) for a in call.args for n in ast.walk(a))
    return dotted(call.func) in updated and not nested


def _others(view: View, group: Group, every: Sequence[Mark]) -> set[str]:
    """The Modules that other steps of the function update; those not known are all."""
    own = {id(m.statement) for m in group.marks}
    steps = {m.who for m in every if m.act is Act.STEP and id(m.statement) not in own}
    found = {who: models_of(view, who) for who in steps - set(group.optimizers)}
    unknown = any(not some for some in found.values())
    mine = {m for o in group.optimizers for m in models_of(view, o)}
    return mine if unknown else {m for some in found.values() for m in some}


def _draws(view: View) -> bool:
    """Whether a class that the file may get to know draws random numbers, as dropout does."""
    classes = (c.node for f in connected(view) for c in f.classes.values())
    return any(_is_drawing(n) for c in classes for n in ast.walk(c))


def _is_drawing(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return "dropout" in name.lower() or "rrelu" in name.lower() or name in _DRAWING


def constants(view: View, group: Group, item: ast.stmt, later: Iterable[ast.AST], own: str) -> bool:
    """Whether the loss sees what a statement computes only as a constant: ``fake.detach()``."""
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    if not updated or models(view, [item], own) & updated:
        return False
    names = binds([item], own)
    found = [u for n in later for u in uses(n, own) if u.name in names and not u.stored]
    around = [view.file.parents.get(id(u.node)) for u in found]
    return all(isinstance(p, ast.Attribute) and p.attr in ("detach", "data") for p in around)
