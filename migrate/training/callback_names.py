"""In: an epoch loop and the methods it becomes. Out: which variables the methods share."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from migrate.training.effects import binds, uses
from migrate.training.epoch_loops import EpochLoop


@dataclass(frozen=True)
class Method:
    """``event`` is what Model calls, ``lead`` the lines in front of the statements, ``bound``
    the names that both bind."""

    event: str
    lead: tuple[str, ...]
    body: tuple[ast.stmt, ...]
    bound: frozenset[str]


def is_read(loop: EpochLoop, name: str) -> bool:
    """Whether a variable of the loop is read in it or behind it; in a module, always."""
    if loop.scope is None:
        return bool(name)
    heads = [loop.outer.target, loop.inner.target, loop.call]
    skipped = {id(n) for h in heads for n in ast.walk(h)}
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(loop.scope)
        if id(n) not in skipped
    )


def is_batch_read(loop: EpochLoop) -> bool:
    """Whether anything but the step reads the batch."""
    later = [s for s in loop.tail if not binds([s], loop.own) & {*loop.columns}]
    reading = {
        u.name for s in [*loop.early, *loop.late, *later] for u in uses(s, loop.own) if not u.stored
    }
    behind = [n for n in _behind(loop) if isinstance(n.ctx, ast.Load)]
    return bool((reading | {n.id for n in behind}) & {*loop.columns})


def _behind(loop: EpochLoop) -> list[ast.Name]:
    """The names behind the loop, and those in functions defined in front of it."""
    if loop.scope is None:
        return []
    inner = (ast.FunctionDef, ast.Lambda)
    defined = {id(n) for f in ast.walk(loop.scope) if isinstance(f, inner) and f is not loop.scope
               for n in ast.walk(f)}  # fmt: skip
    end = loop.outer.end_lineno or loop.outer.lineno
    return [
        n
        for n in ast.walk(loop.scope)
        if isinstance(n, ast.Name) and (n.lineno > end or id(n) in defined)
    ]


def shared(loop: EpochLoop, methods: Sequence[Method]) -> set[str]:
    """What one method binds and another place, or its own next call, reads."""
    found: set[str] = set()
    behind = {n.id for n in _behind(loop) if isinstance(n.ctx, ast.Load)}
    for method in methods:
        for name in method.bound:
            if "." in name:
                continue
            others = any(_asks(o, name) for o in methods if o is not method)
            if loop.scope is None or name in behind or others or not _begins(method, name):
                found.add(name)
    return found


def _asks(method: Method, name: str) -> bool:
    """Whether a method reads what another has bound."""
    read = any(u.name == name and not u.stored for s in method.body for u in uses(s))
    return (read or any(f"{name} +=" in line for line in method.lead)) and not _begins(method, name)


def _begins(method: Method, name: str) -> bool:
    """Whether each call of a method binds the name before anything reads it."""
    for line in method.lead:
        target, _, value = line.partition(" = ")
        if value and name in target.strip("()").replace(",", " ").split():
            return True
        if line.startswith(f"{name} +="):
            return False
    return anew(method.body, name)


def anew(items: Sequence[ast.stmt], name: str) -> bool:
    """Whether the first statement that names it binds it, without reading it."""
    for item in items:
        if not any(u.name == name for u in uses(item)):
            continue
        if isinstance(item, ast.Assign):
            bare = any(binds_whole(t, name) for t in item.targets)
            return bare and not any(u.name == name for u in uses(item.value))
        if isinstance(item, ast.For):
            if any(u.name == name for u in uses(item.iter)):
                return False
            return binds_whole(item.target, name) or anew(item.body, name)
        if isinstance(item, ast.With):
            if any(u.name == name for i in item.items for u in uses(i)):
                return False
            return anew(item.body, name)
        return False
    return False


def binds_whole(target: ast.expr, name: str) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(binds_whole(e, name) for e in target.elts)
    return isinstance(target, ast.Name) and target.id == name


def elsewhere(loop: EpochLoop) -> set[str]:
    """The names that the scope binds outside of the loop (nonlocal asks for one that is)."""
    if loop.scope is None:  # in a module any name can be bound from a method
        return {n.id for n in ast.walk(loop.outer) if isinstance(n, ast.Name)}
    inside = {id(n) for n in ast.walk(loop.outer)}
    found = {n.arg for n in ast.walk(loop.scope.args) if isinstance(n, ast.arg)}
    for node in ast.walk(loop.scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found |= {node.id} if id(node) not in inside else set()
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= {*node.names}
    return found


def declared(loop: EpochLoop, names: Sequence[str]) -> list[str]:
    """The global and nonlocal lines for the names that a method binds."""
    said = [n for n in ast.walk(loop.scope or loop.outer) if isinstance(n, ast.Global)]
    wide = {name for n in said for name in n.names}
    found = [n for n in names if loop.scope is None or n in wide]
    rest = [n for n in names if n not in found]
    lines = [f"global {', '.join(found)}"] if found else []
    return lines + ([f"nonlocal {', '.join(rest)}"] if rest else [])
