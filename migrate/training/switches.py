"""Find the places that freeze or free weights: writes of ``requires_grad``, and of which Module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.analysis.cfg import Node, Unit, evaluated
from migrate.analysis.program import File, Function
from migrate.analysis.types.kinds import without_none
from migrate.syntax.trees import all_names, dotted, is_none, within
from migrate.training.marks import View
from migrate.training.modules import is_copy

EVERY = "*"  # a Module that has no name here
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class Switch:
    """A place that writes ``requires_grad`` of ``subject``.

    ``value`` is None where it is no constant, ``variable`` the name that it is then; ``whole``:
    all weights of the Module are meant, whatever they are called; ``fresh``: it is a copy that the
    function makes itself, so that no optimizer from before holds its weights.
    """

    path: str
    line: int
    subject: str
    value: bool | None
    variable: str = ""
    whole: bool = False
    fresh: bool = False


def only_switches(file: File, node: ast.Attribute) -> bool:
    """Return whether a loop over weights does no more than freeze or free them."""
    call = file.parents.get(id(node))
    loop = file.parents.get(id(call))
    if not isinstance(loop, ast.For) or loop.iter is not call or node.attr != "parameters":
        return False
    name = dotted(loop.target)
    uses = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == name]
    around = [file.parents.get(id(n)) for n in uses]
    return bool(name) and all(
        isinstance(a, ast.Attribute) and a.attr in ("requires_grad", "requires_grad_")
        for a in around
    )


def switches_at(view: View, function: Function | None, unit: Unit, node: Node) -> Iterator[Switch]:
    """Yield the switches of a node of a function or module."""
    for part in evaluated(node):
        for one in within(part) if not isinstance(node.part, _DEFINITIONS) else ():
            found = _switch(view, one)
            if found is None:
                continue
            subject, value, variable = found
            if _may_be_weight(view, function, subject, value):
                line = getattr(one, "lineno", 0)
                name, whole = _module_of(view.file, unit, subject)
                fresh = function is not None and is_copy(view, function, name)
                yield Switch(view.file.path, line, name, value, variable, whole, fresh)


def _switch(view: View, node: ast.AST) -> tuple[ast.expr, bool | None, str] | None:
    """``p.requires_grad = value``, ``p.requires_grad_(value)``, setattr: (p, value, its name)."""
    value: ast.expr | None = None
    if isinstance(node, ast.Attribute) and node.attr == "requires_grad":
        if isinstance(node.ctx, ast.Load):
            return None
        held, value = node.value, getattr(view.file.parents.get(id(node)), "value", None)
    elif not isinstance(node, ast.Call):
        return None
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        given = [*node.args, *(k.value for k in node.keywords)]
        held, value = node.func.value, given[0] if given else ast.Constant(True)
    elif getattr(node.func, "id", "") == "setattr" and len(node.args) == 3:
        held, name, value = node.args
        if not (isinstance(name, ast.Constant) and name.value == "requires_grad"):
            return None
    else:
        return None
    return held, truth(value), getattr(value, "id", "")


def truth(node: object) -> bool | None:
    known = isinstance(node, ast.Constant) and isinstance(node.value, bool)
    return node.value if known else None  # type: ignore[attr-defined]


def _may_be_weight(
    view: View, function: Function | None, node: ast.expr, value: bool | None, depth: int = 3
) -> bool:
    """Whether an expression may be a Module or a weight, rather than an input of a network."""
    if "Module" in view.atoms(node) or depth == 0:
        return True
    if isinstance(node, ast.Call):
        return view.atoms(node) != {"Tensor"}
    if not isinstance(node, ast.Name):
        return True
    found = _bound_to(view, function, node.id)
    if any(f is None or not _is_made(view, f) for f in found):
        return True
    given = function is not None and any(p.arg == node.id for p in function.parameters)
    return given and _is_given_weight(view, function, node.id, value, depth)


def _bound_to(view: View, function: Function | None, name: str) -> list[ast.expr | None]:
    """What a scope binds a name to; None for what is no plain assignment."""
    nodes = function.nodes if function is not None else view.file.nodes
    found: list[ast.expr | None] = []
    for node in nodes:
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            parent = view.file.parents.get(id(node))
            found.append(parent.value if isinstance(parent, ast.Assign) else _batch(view, node))
    return found


def _batch(view: View, node: ast.Name) -> ast.expr | None:
    """The binding of ``for x, y in loader``: what a loader gives is no weight."""
    parent: ast.AST | None = view.file.parents.get(id(node))
    while isinstance(parent, (ast.Tuple, ast.List, ast.Starred)):
        parent = view.file.parents.get(id(parent))
    if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
        text = ast.unparse(parent.iter)
        return None if "param" in text or "modules" in text else parent.iter
    return getattr(parent, "value", None)


def _is_made(view: View, node: ast.expr) -> bool:
    """Whether a value is computed or loaded, and no part of a Module."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return True
    names = {a.kind for a in without_none(view.kind(node))}
    if isinstance(node, ast.Call):
        torch = view.torch_names(node.func)
        if any(n.endswith("Parameter") for n in torch):
            return False
        return bool(torch) or names == {"Tensor"}
    return isinstance(node, ast.Name) and "DataLoader" in str(view.kind(node))


def _is_given_weight(
    view: View, function: Function | None, name: str, value: bool | None, depth: int
) -> bool:
    """Whether some call of a function passes a weight for a parameter."""
    assert function is not None
    calls = view.inference.program.calls.get(function.name, ())
    for file, call, where in calls:
        for parameter, given in arguments_of(call, function):
            if parameter == name:
                there = View(file, view.inference)
                if _may_be_weight(there, where, given, value, depth - 1):
                    return True
    return not calls and value is not True


def arguments_of(call: ast.Call, function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments of a call by parameter, the receiver as the first of a method."""
    names = [p.arg for p in function.parameters]
    if function.owner is not None and not function.decorated("staticmethod") and names:
        if isinstance(call.func, ast.Attribute):
            yield names[0], call.func.value
        names = names[1:]
    yield from zip(names, call.args, strict=False)
    yield from ((k.arg, k.value) for k in call.keywords if k.arg)


def _module_of(file: File, unit: Unit, subject: ast.expr) -> tuple[str, bool]:
    """Return the Module in ``for p in netD.parameters(): p.requires_grad = ...``, and whether all
    of its weights are meant: no condition but those that ask for None or for a list."""
    parents = file.parents
    name, whole = dotted(subject), True
    node, inside = parents.get(id(subject)), subject
    while node is not None and node is not unit and not isinstance(node, _DEFINITIONS):
        if isinstance(node, (ast.For, ast.comprehension)):
            if name in all_names(node.target):
                name = _looped(node.iter)
        elif isinstance(node, ast.If) and any(id(inside) == id(s) for s in node.body):
            whole = whole and _asks_for_none(node.test)
        elif isinstance(node, (ast.While, ast.Try, ast.IfExp, ast.Match, ast.If)):
            whole = False
        inside, node = node, parents.get(id(node))  # type: ignore[assignment]
    return name or EVERY, whole and bool(name)


def _looped(node: ast.expr) -> str:
    """``netD`` of ``netD.parameters()``, ``nets`` of ``nets``; "" for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr in ("parameters", "named_parameters"):
        return dotted(func.value)
    return dotted(node)


def _asks_for_none(test: ast.expr) -> bool:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = test.comparators[0]
        return is_none(other) and isinstance(test.ops[0], ast.IsNot)
    return isinstance(test, ast.Call) and getattr(test.func, "id", "") == "isinstance"
