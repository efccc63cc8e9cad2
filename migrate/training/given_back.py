"""Find the names that the region of a training step gives back, since something reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.program import Function
from migrate.training.effects import Use, binds, blocks, dotted, uses
from migrate.training.marks import View
from migrate.training.slices import Region


def results(view: View, region: Region, function: Function | None, own: str) -> tuple[str, ...]:
    """What the region binds and something outside of it reads, the loss itself apart.

    Attributes of self may be read anywhere.
    """
    bound: list[str] = []
    for item in region.inside:
        bound += [u.name for u in uses(item, own) if u.stored and u.name not in bound]
        bound += sorted(binds([item], own) - set(bound))
    only = region.losses[0] if len(region.losses) == 1 else None
    loss = dotted(only) if only is not None else ""
    top = function.node if function is not None else view.file.source.tree
    skipped = {id(n) for s in region.inside for n in ast.walk(s)}
    skipped |= {id(n) for m in region.group.marks for n in ast.walk(m.statement)}
    read = {
        u.name
        for u in uses_below(top, own)
        if not u.stored and id(u.node) not in skipped and _reached(view, u, region, own)
    }
    return tuple(n for n in bound if (n in read or "." in n) and n != loss)


def uses_below(top: ast.AST, own: str) -> Iterator[Use]:
    for block in blocks(top):
        for item in block:
            yield from uses(item, own)


def _reached(view: View, use: Use, region: Region, own: str) -> bool:
    """Return whether a read may see what the region bound."""
    facts = view.inference.facts(view.file.path)
    return any(
        facts.carries(use.name, item, use.node)
        for item in region.inside
        if use.name in binds([item], own)
    )
