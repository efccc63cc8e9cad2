"""In: statements. Out: the names they read and bind, attributes as dotted names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from migrate.syntax.trees import all_names, all_parameters, children, dotted, stored_names


@dataclass(frozen=True)
class Use:
    """One place that reads or binds a name: "x", or "self.model" for an attribute of self."""

    name: str
    node: ast.Name | ast.Attribute
    stored: bool


def uses(node: ast.AST, own: str = "self") -> Iterator[Use]:
    """The names under a node, in the order of the tree; ``own`` is the first parameter's name.

    Attributes of ``own`` count as names. What a lambda, comprehension or inner function binds is
    its own affair.
    """
    if isinstance(node, ast.Attribute) and dotted(node.value) == own:
        yield Use(f"{own}.{node.attr}", node, not isinstance(node.ctx, ast.Load))
        return
    if isinstance(node, ast.Name):
        yield Use(node.id, node, not isinstance(node.ctx, ast.Load))
        return
    inner = _bound_inside(node)
    for child in children(node):
        for use in uses(child, own):
            if use.name not in inner:
                yield use


def _bound_inside(node: ast.AST) -> set[str]:
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return {name for g in node.generators for name in all_names(g.target)}
    if isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)):
        found = {a.arg for a in all_parameters(node.args)}
        if not isinstance(node, ast.Lambda):
            found |= {name for item in node.body for name in stored_names(item)}
        return found
    return set()


def reads(nodes: Iterable[ast.AST], own: str = "self") -> set[str]:
    """The names that are read; ``x += 1`` reads x."""
    found = {u.name for n in nodes for u in uses(n, own) if not u.stored}
    for node in nodes:
        for item in ast.walk(node):
            if isinstance(item, ast.AugAssign):
                found |= {u.name for u in uses(item.target, own)}
    return found


def binds(nodes: Iterable[ast.AST], own: str = "self") -> set[str]:
    """The names that are bound, or written into (``x[i] = v`` binds x)."""
    found = {u.name for n in nodes for u in uses(n, own) if u.stored}
    for node in nodes:
        for item in ast.walk(node):
            if isinstance(item, ast.Subscript) and not isinstance(item.ctx, ast.Load):
                found |= {u.name for u in uses(item.value, own)}
            elif isinstance(item, (ast.FunctionDef, ast.ClassDef)):
                found.add(item.name)
            elif isinstance(item, (ast.Import, ast.ImportFrom)):
                found |= {(a.asname or a.name).partition(".")[0] for a in item.names}
            elif isinstance(item, ast.ExceptHandler) and item.name:
                found.add(item.name)
    return found


def changed(item: ast.stmt, own: str) -> set[str]:
    """What a statement binds, writes into or changes in place."""
    found = binds([item], own)
    for node in ast.walk(item):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name.endswith("_") and not name.endswith("__"):
                found.add(dotted(node.func.value).partition(".")[0])
    return found - {""}


_FILLING = frozenset(("append", "extend", "insert", "add", "update", "appendleft", "setdefault"))


def filled(item: ast.stmt) -> set[str]:
    """Return the variables into whose containers a statement puts something."""
    return {dotted(held).partition(".")[0] for held in filling(item)} - {""}


def filling(item: ast.stmt) -> Iterator[ast.expr]:
    """Yield the containers into which a statement puts something."""
    for node in ast.walk(item):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            func = node.value.func
            if isinstance(func, ast.Attribute) and func.attr in _FILLING:
                yield func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield node.value


def leaves(item: ast.stmt) -> bool:
    """Whether a statement may end the round of the loop (or the call) that it stands in."""
    if isinstance(item, (ast.Continue, ast.Break, ast.Return)):
        return True
    if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    inner = [s for block in blocks(item) for s in block]
    if isinstance(item, (ast.For, ast.AsyncFor, ast.While)):  # break and continue are its own
        return any(isinstance(n, ast.Return) for s in inner for n in ast.walk(s))
    return any(map(leaves, inner))


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements right below a statement or module."""
    if isinstance(node, (ast.Assign, ast.Expr, ast.Return)):
        return
    for name in ("body", "orelse", "finalbody"):
        value = getattr(node, name, None)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
    for handler in getattr(node, "handlers", ()):
        yield handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def free(name: str, taken: set[str]) -> str:
    """Return a name that nothing has; it is taken from now on."""
    number, chosen = 2, name
    while chosen in taken:
        chosen, number = f"{name}{number}", number + 1
    taken.add(chosen)
    return chosen
