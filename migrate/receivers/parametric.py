"""Results of a function that are its arguments, or what calling them gives: other for each call.

``def default(value, other): return value if exists(value) else other`` gives what one call passes,
not what any call of the program does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate.analysis.facts import Facts
from migrate.program import Function
from migrate.receivers import values
from migrate.receivers.kinds import NONE, NOTHING, UNKNOWN, Kind, join, kind, ordered, without_none
from migrate.receivers.world import Result, World
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
    """Return what a function of WRAPPING or CHANGING gives; the latter are given Modules."""
    given = args[0] if args else UNKNOWN
    return kind("Module") if given == UNKNOWN and name in CHANGING else given


def results(function: Function, facts: Facts, kinds: Mapping[int, Kind]) -> tuple[Result, ...]:
    """Return what a function may give, one by one; nothing where no result is a parameter's."""
    node = function.node
    if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return ()
    body = node.body if isinstance(node.body, list) else [ast.Return(node.body)]
    names = {a.arg for a in (*function.parameters, *node.args.kwonlyargs)}
    returned = [r.value for s in body for r in _returns(s)]
    if not any(_mentions(value, names) for value in returned if value is not None):
        return ()
    found = _Results(names, function, facts, kinds)
    given = [r for value in returned for r in found.of(value)]
    if not isinstance(node, ast.Lambda) and not isinstance(node.body[-1], (ast.Return, ast.Raise)):
        given.append(Result(NONE))  # the end of the body may be reached
    return tuple(dict.fromkeys(given)) if any(r.parameter for r in given) else ()


def _mentions(value: ast.expr, names: set[str]) -> bool:
    """Return whether an expression may be a name, or the call of a name."""
    if isinstance(value, ast.IfExp):
        return _mentions(value.body, names) or _mentions(value.orelse, names)
    named = [value.func, *value.args] if isinstance(value, ast.Call) else [value]
    return any(isinstance(n, ast.Name) and n.id in names for n in named)


@dataclass(frozen=True)
class _Results:
    names: set[str]
    function: Function
    facts: Facts
    kinds: Mapping[int, Kind]

    def of(self, value: ast.expr | None) -> Iterator[Result]:
        """Yield what an expression that is returned may be."""
        if value is None:
            yield Result(NONE)
        elif isinstance(value, ast.IfExp):
            yield from self.of(value.body)
            yield from self.of(value.orelse)
        elif isinstance(value, ast.Name) and self._parameter(value):
            yield Result(self._kind(value), value.id)
        elif (callee := self._callee(value)) is not None and self._parameter(callee):
            yield Result(self._kind(callee), callee.id, called=True)
        else:
            yield Result(self._kind(value))

    def _parameter(self, name: ast.Name) -> bool:
        """Return whether a name that is read is what the caller has passed."""
        if name.id not in self.names:
            return False
        if name.id not in self.function.stores:
            return True
        binding = self.facts.reach(name).only
        return binding is not None and isinstance(binding.place, ast.arg)

    def _callee(self, value: ast.expr) -> ast.Name | None:
        """Return the name that is called, directly or by what torch has for it."""
        if not isinstance(value, ast.Call):
            return None
        if isinstance(value.func, ast.Name):
            return value.func
        torchs = any(a.kind == "ref" and a.name in CALLERS for a in self._kind(value.func))
        first = value.args[0] if torchs and value.args else None
        return first if isinstance(first, ast.Name) else None

    def _kind(self, node: ast.AST) -> Kind:
        return self.kinds.get(id(node), NOTHING)


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """Yield the returns of the function itself, not of those defined in it."""
    if isinstance(node, ast.Return):
        yield node
    elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for child in children(node):
            yield from _returns(child)


def of_argument(result: Result, given: Kind, world: World) -> Kind:
    """Return what a result is for a call that passes a value of the kind ``given``."""
    place = result.kind
    names = {a.kind for a in place}
    rest = without_none(given)
    kept = frozenset(a for a in rest if a.kind in names or "unknown" in names)
    if rest and (not kept or (kept >= UNKNOWN and "unknown" not in names)):
        kept = join(kept - UNKNOWN, without_none(place))  # an annotation or a test says it
    if rest != given and "None" in names:
        kept |= NONE
    if not result.called or not kept:
        return kept
    return given_by(without_none(kept), world)


def passed(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call passes for a parameter, where that can be told."""
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
    """Return what calling something gives, whatever it is called with."""
    found = []
    for atom in ordered(callee):
        function = world.function_of(atom.name) if atom.kind in ("function", "method") else None
        if function is not None:
            found.append(world.returns(function))
        elif atom.kind == "Module":
            found.append(values.call_module(frozenset((atom,)), world))
        elif atom.kind == "class":
            found.append(values.instance_of(atom, (), world))
        elif atom.kind in ("partial", "callable"):
            made = join(*atom.items)
            found.append(given_by(made, world) if atom.kind == "partial" else made)
        else:
            found.append(UNKNOWN)
    return join(*found) or UNKNOWN
