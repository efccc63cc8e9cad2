"""In: a function of the project. Out: the parameter whose call it returns: a thin wrapper.

``def checkpoint(function, *args): return torch.utils.checkpoint.checkpoint(function, *args)``
gives what calling its argument gives, which differs from call to call of the wrapper.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.program import Function
from migrate.receivers import values
from migrate.receivers.kinds import UNKNOWN, Kind, join, kind, ordered
from migrate.receivers.world import World
from migrate.syntax import children

CALLERS = ("torch.utils.checkpoint.checkpoint", "torch.jit.annotate")
# What these are given comes back: the same object, or one that is used like it.
WRAPPING = ("torch.jit.script", "torch.compile", "torch.jit.ignore", "torch.no_grad")
_UTILS = "torch.nn.utils."
CHANGING = tuple(
    _UTILS + name
    for name in (
        "weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm",
        "parametrizations.weight_norm", "parametrizations.spectral_norm",
        "parametrize.register_parametrization", "parametrize.remove_parametrizations",
    )
)  # fmt: skip


def given_back(name: str, args: tuple[Kind, ...]) -> Kind:
    """What a function of WRAPPING or CHANGING gives; the latter are given Modules."""
    given = args[0] if args else UNKNOWN
    return kind("Module") if given == UNKNOWN and name in CHANGING else given


def called_parameter(function: Function, kinds: dict[int, Kind]) -> str:
    """The parameter that every ``return`` calls; "" where there is another value to return."""
    node = function.node
    body = node.body if isinstance(node.body, list) else [ast.Return(node.body)]
    if not isinstance(body[-1], ast.Return) or not isinstance(body[-1].value, ast.Call):
        return ""
    names = {_callee(r.value, kinds) for s in body for r in _returns(s)}
    name = names.pop() if len(names) == 1 else ""
    if name not in {a.arg for a in (*function.parameters, *node.args.kwonlyargs)}:
        return ""
    return "" if name in function.stores else name


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """The returns of the function itself, not of those defined in it."""
    if isinstance(node, ast.Return):
        yield node
    elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for child in children(node):
            yield from _returns(child)


def _callee(value: ast.expr | None, kinds: dict[int, Kind]) -> str:
    """The name that is called, directly or by what torch has for it."""
    if not isinstance(value, ast.Call):
        return ""
    if isinstance(value.func, ast.Name):
        return value.func.id
    torchs = any(a.kind == "ref" and a.name in CALLERS for a in kinds.get(id(value.func), ()))
    first = value.args[0] if torchs and value.args else None
    return first.id if isinstance(first, ast.Name) else ""


def passed(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """What a call passes for a parameter, where that can be told."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [a.arg for a in function.parameters]
    shift = function.owner is not None and not function.decorated("staticmethod")
    index = names.index(name) - int(shift) if name in names else -1
    if not 0 <= index < len(call.args):
        return None
    starred = any(isinstance(a, ast.Starred) for a in call.args[: index + 1])
    return None if starred else call.args[index]


def given_by(callee: Kind, world: World) -> Kind:
    """What calling something gives, whatever it is called with."""
    found = []
    for atom in ordered(callee):
        function = world.function_of(atom.name) if atom.kind in ("function", "method") else None
        if function is not None:
            found.append(world.returns(function))
        elif atom.kind == "Module":
            found.append(values.call_module(frozenset((atom,)), world))
        elif atom.kind in ("partial", "callable"):
            made = join(*atom.items)
            found.append(given_by(made, world) if atom.kind == "partial" else made)
        else:
            found.append(UNKNOWN)
    return join(*found) or UNKNOWN
