"""Variables that functions inside of a unit bind (nonlocal, global) or put something into."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from migrate.analysis.program import File, Function
from migrate.analysis.types.contents import puts
from migrate.syntax.trees import dotted

_Scope = tuple[Function | None, str]  # None: the top level of the file


@dataclass(frozen=True)
class Captured:
    """By variable of a unit: the functions inside that bind it, and those that change its contents.

    A change counts where the variable is spelled; what a function does to an alias of it is seen
    where the alias is made.
    """

    bound: dict[_Scope, tuple[Function, ...]] = field(default_factory=dict)
    filled: dict[_Scope, tuple[Function, ...]] = field(default_factory=dict)


def captured(file: File) -> Captured:
    """Return what the functions of a file do to the variables of the units around them."""
    found = Captured()
    for function in file.functions.values():
        for name in function.globals:
            if name in function.stores or _binds_otherwise(function, name):
                _add(found.bound, (bound_in(function, name), name), function)
    for node in _filled(file):
        inside = file.function_at(node)
        if inside is None or node.id in inside.locals or node.id in inside.inner:
            continue
        _add(found.filled, (bound_in(inside, node.id), node.id), inside)
    return found


def _binds_otherwise(function: Function, name: str) -> bool:
    """Return whether an import, definition or handler in a function binds a name."""
    return any(
        name in (getattr(n, "name", ""), getattr(n, "asname", ""))
        for n in function.nodes
        if n is not function.node
    )


def _add(into: dict[_Scope, tuple[Function, ...]], scope: _Scope, function: Function) -> None:
    known = into.get(scope, ())
    if function not in known:
        into[scope] = (*known, function)


def _filled(file: File) -> list[ast.Name]:
    """Return the variables that something is put into where they are spelled."""
    holders: list[ast.expr] = [n.value for n in file.of(ast.Attribute) if puts(n.attr)]
    for item in file.of(ast.Subscript):
        if isinstance(item.ctx, ast.Store):
            holders.append(item.value)
    holders += [n.target for n in file.of(ast.AugAssign)]
    return [n for n in map(_root, holders) if n is not None]


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def bound_in(function: Function, name: str) -> Function | None:
    """Return the unit whose variable a function means by a name that is not its own."""
    if name in function.globals and any(
        isinstance(n, ast.Global) and name in n.names for n in function.nodes
    ):
        return None
    around = function.parent
    while around is not None and name not in around.locals:
        around = around.parent
    return around


_WRAPS = ("wraps", "functools.wraps")


def is_wraps(decorator: ast.expr) -> bool:
    """Return whether a decorator copies the name of another function and nothing else."""
    return isinstance(decorator, ast.Call) and dotted(decorator.func) in _WRAPS
