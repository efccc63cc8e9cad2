"""Name the Cells of a training step, place where they are made, and set their mode.

Torch's Modules begin in training mode, Cells do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import without_none
from migrate.syntax.lines import above, indent_of, whole
from migrate.syntax.trees import dotted
from migrate.training.clips import settings
from migrate.training.effects import binds, blocks, uses
from migrate.training.groups import Group, Unclear, models_of
from migrate.training.marks import View
from migrate.training.modules import models
from migrate.training.slices import Region
from migrate.training.variables import Variables

_OPTIMIZER = ("optimizer", "optimiser", "optim", "opt", "solver")


@dataclass(frozen=True)
class Place:
    """``made_at``: offset and indentation of the statement that builds the train step called
    ``variable``; ``class_at``: offset in front of which the class ``cell`` is written. ``late``:
    the statement stands right in front of the call instead."""

    cell: str
    variable: str
    made_at: int
    indent: str
    behind: bool
    class_at: int
    late: bool = False


def place(
    view: View,
    region: Region,
    names: Variables,
    function: Function | None,
    several: bool,
    taken: set[str],
) -> Place:
    """Choose the names and places of one training step."""
    cell, variable = _names(region.group, several, taken)
    first = names.loop or _first(region)
    class_at = above(view.file.source, top_level(view, first))
    start = constructor(view, region.group, names, function)
    if start is not None and not names.late:
        end = whole(view.file.source, start).end
        indent = indent_of(view.file.source, start)
        return Place(cell, f"self.{variable}", end, indent, True, class_at)
    indent = indent_of(view.file.source, first)
    made_at = above(view.file.source, first)
    late = bool(names.late) or (names.loop is None and _built_inside(region))
    return Place(cell, variable, made_at, indent, False, class_at, late)


def _built_inside(region: Region) -> bool:
    """Return whether its optimizer is built behind the first statement that gives way."""
    block = region.block
    between = block[block.index(_first(region)) : region.last]
    return bool(binds(between) & set(region.group.optimizers))


def _first(region: Region) -> ast.stmt:
    """The first statement of the region that gives way to the call."""
    own = {id(m.statement) for m in region.group.marks} | {id(s) for s in region.inside}
    return next(s for s in region.block if id(s) in own or s is region.block[region.last])


def _names(group: Group, several: bool, taken: set[str]) -> tuple[str, str]:
    """Class and variable: NetWithLoss and train_net, or named after the optimizer's part."""
    part = _part(group.optimizers[0]) if several and not group.by_hand else ""
    short = part if part[:1].isupper() else part.capitalize()
    cell = f"{short if short.isidentifier() else f'Net{short}'}WithLoss"  # optimizer2: Net2
    variable = f"train_{part.lower()}" if part else "train_net"
    variable = "backward_net" if group.by_hand else variable
    found = []
    for name in (cell, variable):
        number, chosen = 2, name
        while chosen in taken:
            chosen, number = f"{name}{number}", number + 1
        taken.add(chosen)
        found.append(chosen)
    return found[0], found[1]


def _part(optimizer: str) -> str:
    """``optimizer_G`` is about G, ``self.d_optim`` about d."""
    words = [w for w in optimizer.rpartition(".")[2].split("_") if w]
    rest = [w for w in words if w.lower() not in _OPTIMIZER]
    if rest and rest != words:
        return "".join(w if i == 0 else w.capitalize() for i, w in enumerate(rest))
    name = words[0] if words else "net"
    if name.lower() in _OPTIMIZER:
        return ""
    for word in _OPTIMIZER:
        if name.lower().startswith(word) and len(name) > len(word):
            return name[len(word) :]
    return name


def top_level(view: View, item: ast.stmt) -> ast.stmt:
    """The statement of the file's top level that holds another."""
    node: ast.AST = item
    while not isinstance(view.file.parents[id(node)], ast.Module):
        node = view.file.parents[id(node)]
    assert isinstance(node, ast.stmt)
    return node


def _stored_elsewhere(view: View, name: str, start: ast.FunctionDef) -> bool:
    """Whether a file that knows the class may put something else there: ``t.criterion = ...``."""
    own = {id(n) for n in ast.walk(start)}
    return any(
        isinstance(n, ast.Attribute)
        and n.attr == name
        and not isinstance(n.ctx, ast.Load)
        and id(n) not in own
        and not (isinstance(n.value, ast.Name) and n.value.id == "self")
        for file in view.neighbours
        for n in file.nodes
    )


def _settings(group: Group, function: Function) -> set[str]:
    """What clipping and scaling are set up from, global names apart."""
    if not group.fused:
        return {group.scaler} - {""}
    found = settings(group, function.parameters[0].arg if function.parameters else "-")
    local = {n for n in found if "." in n or n in function.locals}
    return local | ({group.scaler} - {""})


def constructor(
    view: View, group: Group, names: Variables, function: Function | None
) -> ast.stmt | None:
    """In a class: the statement of ``__init__`` behind which everything needed is there."""
    owner = function.owner if function is not None else None
    if owner is None or function is None or function.name == "__init__":
        return None
    needed = {*names.held, *group.optimizers, *_settings(group, function)}
    start = owner.methods.get("__init__")
    if start is None or not isinstance(start.node, ast.FunctionDef):
        return None
    if any(not n.startswith("self.") for n in needed):
        return None
    if any(owner.stores.get(n.removeprefix("self.")) != [start] for n in needed):
        return None
    if any(_stored_elsewhere(view, n.removeprefix("self."), start.node) for n in needed):
        return None
    bound = [s for s in start.node.body if binds([s]) & needed]
    inner = [s for s in bound if any(True for _ in blocks(s))]
    return bound[-1] if bound and not inner else None


def lines(
    view: View, region: Region, build: str, place: Place, function: Function | None, own: str
) -> list[str]:
    """Where the code switches Modules itself, before or in the loop, the others are left."""
    nodes = [*region.again, *region.inside, *region.losses]
    said = set() if place.behind else _said(view, region, build, function)
    if not said:
        hidden = _hidden(view, nodes, own, own, set())
        found = {m for m, n in hidden if "." in m and not view.is_leaf(n)}
        modules = sorted(m for m in found if not _is_evaluated(view, m))
        return [f"{place.variable}.set_train()", *(f"{m}.set_train()" for m in modules)]
    updated = {m for o in region.group.optimizers for m in models_of(view, o)}
    rest = sorted(m for m in models(view, nodes, own) & updated if not _covered(m, said))
    return [f"{m}.set_train()" for m in rest]


def _is_evaluated(view: View, module: str) -> bool:
    """Return whether a Module only ever evaluates: ``vgg.eval()``, ``vgg = Net().eval()``."""
    calls = [(c, n) for n in ("eval", "train") for c, _ in view.file.calls.get(n, ())]
    modes = set()
    for call, mode in calls:
        held = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        item = view.file.parents.get(id(call))
        bound = {dotted(t) for t in item.targets} if isinstance(item, ast.Assign) else set()
        if module in bound or f"{held}.".startswith(f"{module}."):
            modes.add(mode)
    return modes == {"eval"}


def hidden_modules(
    view: View, region: Region, function: Function | None, own: str
) -> list[str] | Unclear:
    """The Modules and weights that the Cell of a step does not hold though it computes by them.

    Functions that are called compute by them, or the function sees them at the file's top level.
    """
    nodes = [*region.again, *region.inside, *region.losses]
    found = dict(_hidden(view, nodes, own, own, set()))
    if function is not None:
        used = models(view, nodes, own)
        for use in (u for n in nodes for u in uses(n, own) if u.name in used and not u.stored):
            root = use.name.partition(".")[0]
            called = view.atoms(use.node) & {"function", "method", "ref"}
            if root != own and not called and _binder(root, function) is None:
                found.setdefault(use.name, use.node)
    for name, place in found.items():
        if "." not in name and not _is_in_sight(view, name, place, function):
            return Unclear(region.group.backwards[0], f"{name} is out of its sight")
    return sorted(found)


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


def _hidden(
    view: View, nodes: list[ast.AST], its: str, own: str, seen: set[str]
) -> Iterator[tuple[str, ast.AST]]:
    """Yield what functions that are called compute by, with the place that reads it.

    ``its`` is the first parameter's name at ``nodes``, which is ``own`` where the step stands.
    """
    for use in (u for n in nodes for u in uses(n, its)):
        for atom in without_none(view.kind(use.node)):
            called = view.inference.function_of(atom.name) if "::" in atom.name else None
            if atom.kind not in ("function", "method") or called is None or called.key in seen:
                continue
            seen.add(called.key)
            method = atom.kind == "method" and bool(called.parameters)
            if (method and use.name != f"{its}.{called.name}") or (
                not method and called.path != view.file.path
            ):
                continue  # of a Module that the step holds itself, or of another file
            first = called.parameters[0].arg if method else "-"
            there = View(view.inference.program.files[called.path], view.inference)
            body = called.node.body
            items: list[ast.AST] = list(body) if isinstance(body, list) else [body]
            named = models(there, items, first)
            for read in (u for n in items for u in uses(n, first) if u.name in named):
                if not there.atoms(read.node) & {"function", "method"}:
                    if read.name.startswith(f"{first}."):
                        yield own + read.name.removeprefix(first), read.node
                    elif read.name.partition(".")[0] not in called.locals and not read.stored:
                        yield read.name, read.node
            yield from _hidden(there, items, first, own, seen)


def _is_in_sight(view: View, name: str, place: ast.AST, function: Function | None) -> bool:
    """Return whether a variable that a function reads is the same where a step stands."""
    return _binder(name, view.file.function_at(place)) is _binder(name, function)


def _binder(name: str, function: Function | None) -> Function | None:
    while function is not None and name not in function.locals:
        function = function.parent
    return function
