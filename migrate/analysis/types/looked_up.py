"""In: a call of a Module of unknown class. Out: a dict, where its result is indexed by keys.

``losses = model(images, targets); sum(losses.values())``: the result of such a Module is taken for
a Tensor, but a Tensor has no items and no string keys. The Modules of the program show which
dictionary it is.
"""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import UNKNOWN, Atom, Kind, join, ordered
from migrate.analysis.types.world import World

_OF_MAPPINGS = ("items", "keys", "values")


def given(atom: Atom, node: ast.Call, path: str, world: World) -> Kind:
    """Return the result of the call; nothing where it is used as a Tensor may be."""
    if atom.name not in ("", "torch.nn.Module") or not _is_asked(node, path, world):
        return frozenset()
    classes = [c.key for c in world.classes() if world.is_module(c.key)]
    forwards = [a for key in classes for a in ordered(world.member(key, "forward"))]
    functions = [world.function_of(a.name) for a in forwards if a.kind == "method"]
    results = [world.returns(f) for f in functions if f is not None]
    found = frozenset(a for result in results for a in result if a.kind == "dict")
    return join(found) or frozenset((Atom("dict", items=(UNKNOWN,)),))


def _is_asked(node: ast.Call, path: str, world: World) -> bool:
    """Whether keys are asked of the call, or of the variable that it is bound to."""
    file = world.program.files[path]
    parents = file.parents
    holder = parents.get(id(node))
    if _asks(holder, node):
        return True
    if not isinstance(holder, ast.Assign) or not isinstance(holder.targets[0], ast.Name):
        return False
    around: ast.AST = holder
    while not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        around = parents[id(around)]
    name = holder.targets[0].id
    function = file.functions.get(id(around))
    nodes = function.nodes if function is not None else file.nodes
    named = (n for n in nodes if isinstance(n, ast.Name) and n.id == name)
    return any(_asks(parents.get(id(n)), n) for n in named)


def _asks(holder: ast.AST | None, node: ast.expr) -> bool:
    if isinstance(holder, ast.Subscript) and holder.value is node:
        return isinstance(holder.slice, ast.Constant) and isinstance(holder.slice.value, str)
    return isinstance(holder, ast.Attribute) and holder.attr in _OF_MAPPINGS
