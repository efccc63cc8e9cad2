"""Find values that come into a step from outside of its function with a gradient of their own.

``step(head(encoder(x)))``: what the caller, or the function around, computed by a Module reaches
the step as a constant, and the weights behind it would not be trained, without a word.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from migrate.analysis.program import Function
from migrate.rules.called_from import passed, sites_of
from migrate.syntax.trees import FUNCTIONS, dotted
from migrate.training.effects import binds
from migrate.training.groups import Group, models_of
from migrate.training.marks import View
from migrate.training.modules import computes, models, quiet

_CUT = frozenset("detach data item numpy tolist shape dtype device argmax long int bool".split())
_DEEPEST = 4  # names that one value is followed through


def outside(view: View, group: Group, names: Iterable[str], function: Function | None) -> str:
    """Return the name of such a value among those that a step reads; "" for none."""
    if function is None:
        return ""
    updated = {m for o in group.optimizers for m in models_of(view, o)}
    for name in names:
        for made, here in _origins(view, function, name):
            if made and not (here and updated and made.isdisjoint(updated)):
                return name
    return ""


def _origins(view: View, function: Function, name: str) -> Iterator[tuple[set[str], bool]]:
    """Yield the Modules behind what a parameter is passed, or a variable around holds.

    The second says whether they have the names that they have in the function itself.
    """
    if name in {a.arg for a in function.parameters} and name not in function.assigned:
        for file, call, _ in sites_of(view.inference, function):
            given = passed(function, call, name)
            if given is not None:
                yield _behind(View(file, view.inference), given, _DEEPEST), False
        return
    outer = function.parent
    while outer is not None and name not in function.locals:
        for item in outer.assigned.get(name, ()):
            if name in binds([item]):
                yield _behind(view, item.value, _DEEPEST), True
        outer = outer.parent


def _behind(view: View, node: ast.expr, depth: int) -> set[str]:
    """Return the Modules that compute a value, where a gradient goes through it."""
    if not depth or _is_cut(view, node) or view.atoms(node) == {"Module"}:
        return set()
    if isinstance(node, FUNCTIONS):
        return set()
    found = set()
    if isinstance(node, ast.Call) and computes(view, node.func):
        found.add(dotted(node.func))
    elif isinstance(node, ast.Call) and _is_object(node.func):  # not ``model.init_hidden()``
        found |= models(view, [node.func], "self")
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr) and part is not getattr(node, "func", None):
            found |= _behind(view, part, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not found:
        found |= _behind(view, node.func.value, depth)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for value in view.inference.facts(view.file.path).values(node, parts=True):
            found |= _behind(view, value, depth - 1) if value is not None else set()
    return found


def _is_object(node: ast.expr) -> bool:
    """``net`` or ``self.net``: what is called is the object itself."""
    held = node.value if isinstance(node, ast.Attribute) else node
    return isinstance(held, ast.Name) and (held is node or held.id == "self")


def _is_cut(view: View, node: ast.expr) -> bool:
    """Return whether no gradient goes through a value: it is cut off, or nothing is recorded."""
    named = node.func if isinstance(node, ast.Call) else node
    if isinstance(named, ast.Attribute) and named.attr in _CUT and dotted(named.value) != "self":
        return True
    around = view.file.parents.get(id(node))
    while around is not None and not isinstance(around, (*FUNCTIONS, ast.ClassDef)):
        if isinstance(around, ast.With) and quiet(view, around):
            return True
        around = view.file.parents.get(id(around))
    decorated = getattr(around, "decorator_list", [])
    return any("no_grad" in ast.unparse(d) or "inference_mode" in ast.unparse(d) for d in decorated)
