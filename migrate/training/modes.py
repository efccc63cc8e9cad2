"""In: a training step in its place. Out: the lines that put its Modules into training mode.

Torch's Modules begin in that mode, Cells do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.program import Function
from migrate.receivers.kinds import without_none
from migrate.training.effects import dotted, uses
from migrate.training.groups import models_of
from migrate.training.marks import View
from migrate.training.modules import models
from migrate.training.placing import Place
from migrate.training.slices import Region


def lines(
    view: View, region: Region, build: str, place: Place, function: Function | None, own: str
) -> list[str]:
    """Where the code switches Modules itself, before or in the loop, the others are left."""
    nodes = [*region.again, *region.inside, *region.losses]
    said = set() if place.behind else _said(view, region, build, function)
    if not said:
        hidden = hidden_modules(view, region, own)
        modules = [m for m in hidden if m not in view.leaves]
        return [f"{place.variable}.set_train()", *(f"{m}.set_train()" for m in modules)]
    updated = {m for o in region.group.optimizers for m in models_of(view, o)}
    rest = sorted(m for m in models(view, nodes, own) & updated if not _covered(m, said))
    return [f"{m}.set_train()" for m in rest]


def hidden_modules(view: View, region: Region, own: str) -> list[str]:
    """The Modules by which methods compute that the step calls: no part of its Cell."""
    nodes = [*region.again, *region.inside, *region.losses]
    return sorted(set(_hidden(view, nodes, own)))


def _said(view: View, region: Region, build: str, function: Function | None) -> set[str]:
    """The Modules of the step on which the function calls ``train()`` or ``eval()``."""
    found = set()
    for name in ("train", "eval"):
        for call, where in view.file.calls.get(name, ()):
            if where is function and isinstance(call.func, ast.Attribute):
                module = dotted(call.func.value)
                early = call.lineno <= region.block[region.last].lineno
                if module and module in build and early:
                    found.add(module)
    return found


def _covered(module: str, said: set[str]) -> bool:
    return any(
        module == s or module.startswith(f"{s}.") or s.startswith(f"{module}.") for s in said
    )


def _hidden(view: View, nodes: list[ast.AST], own: str) -> Iterator[str]:
    for use in (u for n in nodes for u in uses(n, own)):
        yield from _enclosed(view, use.node)
        for atom in without_none(view.kind(use.node)):
            method = view.inference.function_of(atom.name) if atom.kind == "method" else None
            if method is None or "::" not in atom.name or not isinstance(method.node.body, list):
                continue
            its = method.parameters[0].arg if method.parameters else "-"
            there = View(view.inference.program.files[method.path], view.inference)
            for name in models(there, method.node.body, its):
                if name.startswith(f"{its}."):
                    yield f"{own}.{name.removeprefix(f'{its}.')}"


def _enclosed(view: View, node: ast.AST) -> Iterator[str]:
    """The Modules and weights around a function that is called: ``lambda x: x @ w``."""
    for atom in without_none(view.kind(node)):
        function = view.inference.function_of(atom.name) if atom.kind == "function" else None
        if function is None or function.path != view.file.path or "::" not in atom.name:
            continue
        body = function.node.body
        items: list[ast.AST] = list(body) if isinstance(body, list) else [body]
        for name in models(view, items, "-"):
            if name in view.leaves and name not in function.locals:
                yield name
