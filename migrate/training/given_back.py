"""In: the region of a training step. Out: the names that it gives back, for those who read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.program import Function
from migrate.training.effects import Use, binds, blocks, dotted, uses
from migrate.training.marks import View
from migrate.training.slices import Region, block_of


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
        if not u.stored and id(u.node) not in skipped and _reached(view, u.node, u.name, region)
    }
    return tuple(n for n in bound if (n in read or "." in n) and n != loss)


def uses_below(top: ast.AST, own: str) -> Iterator[Use]:
    for block in blocks(top):
        for item in block:
            yield from uses(item, own)


def _reached(view: View, node: ast.AST, name: str, region: Region) -> bool:
    """Whether a read may see what the region bound: nothing on the way to it binds it anew."""
    item: ast.AST = node
    while not isinstance(item, ast.stmt):
        item = view.file.parents[id(item)]
    while isinstance(item, ast.stmt):
        block, parent = block_of(view, item)
        if block is region.block:
            return True
        for earlier in block[: block.index(item)]:
            if isinstance(earlier, ast.Assign) and name in binds([earlier]):
                return False
        if isinstance(parent, (ast.For, ast.AsyncFor)) and name in binds([parent.target]):
            return any(s is parent for s in _around(view, region))
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return True
        if not isinstance(parent, ast.stmt):
            return True
        item = parent
    return True


def _around(view: View, region: Region) -> list[ast.AST]:
    found: list[ast.AST] = []
    node: ast.AST = region.block[0]
    while not isinstance(node, ast.Module):
        node = view.file.parents[id(node)]
        found.append(node)
    return found
