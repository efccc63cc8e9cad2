"""In: statements in front of a backward. Out: those of which the loss sees numbers alone.

An advantage, a target or a weight that is computed by the Modules and then detached is a constant
of the loss: it is computed where it stands, in front of the step, as long as no weight changes in
between and nothing inside of the step is needed for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from migrate.rules.torch_sharing import METADATA
from migrate.training.effects import Use, binds, changed, filled, reads, uses
from migrate.training.marks import View
from migrate.training.modules import models, quiet

_CUTTING = {*METADATA, "detach", "data", "item", "numpy", "tolist", "argmax", "requires_grad"}
_NUMBERS = ("float", "int", "bool", "len", "str", "range")
_ON_HOST = ("numpy", "item", "tolist")


def constant_items(
    view: View,
    candidates: Sequence[ast.stmt],
    losses: Sequence[ast.expr],
    touched: set[int],
    own: str,
) -> list[ast.stmt]:
    """Return the statements that Modules touch, and that are needed for numbers alone.

    None where one of them needs what is computed inside of the step, or where a Module would run
    earlier than another that runs before it in torch.
    """
    through = _carrying(view, candidates, touched, own)
    needed = _differentiated(view, losses, own)
    inside: list[ast.stmt] = []
    for item in reversed(candidates):
        wanted = bool((changed(item, own) | filled(item)) & needed)
        needed -= _replaced(item)
        if id(item) in through and wanted:
            inside.append(item)
            needed |= _differentiated(view, [item], own)
    values = reads([*inside, *losses], own)
    found: list[ast.stmt] = []
    for item in reversed(candidates):
        if item not in inside and (changed(item, own) | filled(item) | _emptied(item)) & values:
            found.insert(0, item)
            values |= reads([item], own)
    start = next((i for i, s in enumerate(candidates) if s in inside), len(candidates))
    made = binds(inside, own)
    for item in found:
        late = candidates.index(item) > start
        if reads([item], own) & made or (late and models(view, [item], own)):
            return []
    return [s for s in found if id(s) in touched]


def _carrying(view: View, items: Sequence[ast.stmt], touched: set[int], own: str) -> set[int]:
    """Return the statements, of those that Modules touch, that a gradient may go through."""
    names: set[str] = set()
    found: set[int] = set()
    for item in items:
        read = _differentiated(view, [item], own)
        if id(item) in touched and read & (names | models(view, [item], own)):
            found.add(id(item))
            names |= changed(item, own) | filled(item)
        else:
            names -= _replaced(item)
    return found


def _replaced(item: ast.stmt) -> set[str]:
    """Return the variables that have another value behind a statement, whatever they had."""
    targets = item.targets if isinstance(item, ast.Assign) else []
    each = (
        n for t in targets for n in ([t] if isinstance(t, ast.Name) else getattr(t, "elts", ()))
    )
    return {n.id for n in each if isinstance(n, ast.Name)}


def is_constant(view: View, item: ast.stmt, own: str) -> bool:
    """Return whether a statement reads numbers alone: no gradient goes through what it binds."""
    return not _differentiated(view, [item], own)


def on_host(items: Iterable[ast.stmt]) -> bool:
    """Return whether statements fetch numbers of Tensors."""
    nodes = (n for s in items for n in ast.walk(s))
    return any(isinstance(n, ast.Attribute) and n.attr in _ON_HOST for n in nodes)


def _emptied(item: ast.stmt) -> set[str]:
    """Return the variable whose method is called, and that may be another container by it."""
    call = item.value if isinstance(item, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    held = func.value if isinstance(func, ast.Attribute) else None
    return {held.id} if isinstance(held, ast.Name) else set()


def _differentiated(view: View, nodes: Iterable[ast.AST], own: str) -> set[str]:
    """Return the names that are read so that a gradient may go through."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.stmt) and quiet(view, node):
            continue
        found |= {u.name for u in uses(node, own) if not u.stored and not is_cut(view, u, node)}
        inner = (n for n in ast.walk(node) if isinstance(n, ast.AugAssign))
        found |= {u.name for n in inner for u in uses(n.target, own)}
    return found


def is_own(view: View, node: ast.expr) -> bool:
    """Return whether an object of the program is asked, whose attributes are what it defines."""
    return any(a.name in view.inference.program.classes for a in view.kind(node))


def is_cut(view: View, use: Use, top: ast.AST) -> bool:
    """Return whether only numbers of what is read come to the value of its statement."""
    node: ast.AST = use.node
    while node is not top:
        around = view.file.parents.get(id(node))
        if around is None or isinstance(around, ast.stmt):
            return False
        if isinstance(around, ast.Attribute) and around.attr in _CUTTING:
            return not is_own(view, around.value)
        if isinstance(around, ast.Compare) or (
            isinstance(around, ast.Subscript) and around.slice is node
        ):
            return True
        if isinstance(around, ast.Call) and around.func is not node:
            name = around.func.id if isinstance(around.func, ast.Name) else ""
            plain = name in _NUMBERS and name not in view.file.names
            if plain or view.torch_names(around.func) == {"torch.tensor"}:
                return True
        node = around
    return False
