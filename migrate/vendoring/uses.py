"""In: the tree of a module. Out: which names of the followed packages it uses, import by import."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from migrate.syntax.trees import children, within
from migrate.vendoring.library import absolute

STAR = "*"


@dataclass(frozen=True, order=True)
class Use:
    """``module``: the dotted name that an import gives; ``name``: what is taken from it by
    ``from module import name`` ("" for ``import module``); ``chain``: attributes that are asked of
    what the import binds. ``loaded``: the variable is used, not only bound."""

    module: str
    name: str = ""
    chain: tuple[str, ...] = ()
    loaded: bool = False


def uses(tree: ast.AST, module: str, is_package: bool, roots: Collection[str]) -> frozenset[Use]:
    """What a module imports of the packages ``roots``, and what it does with it.

    A variable counts for all imports that bind it somewhere in the module: too much is asked
    rather than too little.
    """
    found: set[Use] = set()
    variables: dict[str, set[Use]] = {}
    for node in within(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in roots:
                    found.add(Use(alias.name))
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    variables.setdefault(alias.asname or whole, set()).add(Use(whole))
        elif isinstance(node, ast.ImportFrom) and (module or not node.level):
            base = absolute(module, is_package, node)
            if base.partition(".")[0] in roots:
                for alias in node.names:
                    found.add(Use(base, alias.name))
                    own = variables.setdefault(alias.asname or alias.name, set())
                    own.add(Use(base, alias.name))
    if variables:
        for name, chain in chains(tree):
            for use in variables.get(name, ()):
                found.add(Use(use.module, use.name, chain, True))
    return frozenset(found)


def chains(tree: ast.AST) -> list[tuple[str, tuple[str, ...]]]:
    """Every variable that is read, with the attributes that are asked of it: a.b.c()."""
    found: list[tuple[str, tuple[str, ...]]] = []
    pending: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while pending:
        node, after = pending.pop()
        if isinstance(node, ast.Attribute):
            pending.append((node.value, (node.attr, *after)))
            continue
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                found.append((node.id, after))
            continue
        pending += [(child, ()) for child in children(node)]
    return found
