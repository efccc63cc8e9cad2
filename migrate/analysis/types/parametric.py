"""Results of functions that are their arguments, or results of calling them: one for each call.

``def default(value, other): return value if exists(value) else other`` returns an argument of that
call, not the join of the arguments of all calls.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrate.analysis.facts import Facts
from migrate.analysis.program import Function
from migrate.analysis.types import contents, values
from migrate.analysis.types.kinds import (
    NONE,
    NOTHING,
    UNKNOWN,
    Atom,
    Kind,
    indirect,
    join,
    kind,
    ordered,
    shallow,
    without_none,
)
from migrate.analysis.types.units import UnitIndex
from migrate.analysis.types.world import Result, World

SHARED = "="  # passed to a function if some call passes one container for two parameters
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
DEEPEST = 4  # calls of what was passed that lead on to others
CALLERS = ("torch.utils.checkpoint.checkpoint", "torch.jit.annotate")
# These return their argument: the same object, or one that is used like it.
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
    """Return the kind of a call to a wrapper (``DataParallel(net)``) or to a function that changes
    its Module.
    """
    given = args[0] if args else UNKNOWN
    return kind("Module") if given == UNKNOWN and name in CHANGING else given


def results(
    function: Function, facts: Facts, kinds: Mapping[int, Kind], index: UnitIndex
) -> tuple[Result, ...]:
    """Return what a function may give, one by one; nothing where no result is a parameter's."""
    node = function.node
    if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return ()
    returned = function.returned
    if not any(_mentions_name(value) for value in returned if value is not None):
        return ()
    found = _Results(function, facts, kinds, index)
    given = [r for value in returned for r in found.of(value)]
    if not isinstance(node, ast.Lambda) and not isinstance(node.body[-1], (ast.Return, ast.Raise)):
        given.append(Result(NONE))  # the end of the body may be reached
    differ = any(r.parameter or r.closes for r in given)
    return tuple(dict.fromkeys(given)) if differ else ()


def _mentions_name(value: ast.expr) -> bool:
    """Return whether an expression may be a name, or a call with a name."""
    if isinstance(value, ast.IfExp):
        return _mentions_name(value.body) or _mentions_name(value.orelse)
    named = [value.func, *value.args] if isinstance(value, ast.Call) else [value]
    return any(isinstance(n, ast.Name) for n in named)


def parameter_names(function: Function) -> list[str]:
    """Return the parameters that a call may pass one by one, ``self`` apart."""
    bound = function.owner is not None and not function.decorated("staticmethod")
    return [a.arg for a in (*function.parameters[bound:], *function.node.args.kwonlyargs)]


def default_site(function: Function, name: str) -> str:
    """Return the site of the container that is the default of a parameter, if it has one."""
    made = isinstance(function.defaults.get(name), (*_DISPLAYS, ast.Call))
    return f"={function.key}:{name}" if made else ""


@dataclass(frozen=True)
class _Results:
    function: Function
    facts: Facts
    kinds: Mapping[int, Kind]
    index: UnitIndex

    def of(self, value: ast.expr | None) -> Iterator[Result]:
        """Yield what an expression that is returned may be."""
        if value is None:
            yield Result(NONE)
        elif isinstance(value, ast.IfExp):
            yield from self.of(value.body)
            yield from self.of(value.orelse)
        else:
            yield self._one(value)

    def _one(self, value: ast.expr) -> Result:
        found = self._kind(value)
        if isinstance(value, ast.Name):
            if whose := self._parameter(value):
                return Result(found, value.id, whose == "outer")
            return Result(found, closes=self._closes(found))
        callee = self._callee(value)
        whose = self._parameter(callee) if callee is not None else ""
        if callee is None or not whose or not isinstance(value, ast.Call):
            return Result(found)
        args: list[Result] = []
        for arg in value.args if value.func is callee else value.args[1:]:
            if isinstance(arg, ast.Starred):
                break
            args.append(self._one(arg))
        return Result(self._kind(callee), callee.id, whose == "outer", True, tuple(args))

    def _parameter(self, name: ast.Name) -> str:
        """Return whether a name that is read is what a caller has passed: to whom."""
        function = self.function
        if name.id in parameter_names(function):
            if self.index.writers(function, name.id):
                return ""
            if name.id not in function.stores:
                return "own"
            if _is_bound_anew(function, name):
                return ""
            binding = self.facts.reach(name).only
            return "own" if binding is not None and isinstance(binding.place, ast.arg) else ""
        if name.id in function.locals or function.parent is None:
            return ""
        return "outer" if name.id in dict(self._closed(function.parent)) else ""

    def _closes(self, value: Kind) -> tuple[tuple[str, Kind], ...]:
        """Return what a function that is defined here uses of the parameters here."""
        inside = f"{self.function.key}.<locals>."
        if any(a.kind == "function" and a.name.startswith(inside) for a in value):
            return self._closed(self.function)
        return ()

    def _closed(self, function: Function) -> tuple[tuple[str, Kind], ...]:
        """Return the parameters that only plain assignments bind anew, with what these assign."""
        found: list[tuple[str, Kind]] = []
        for name in parameter_names(function):
            assigned = function.assigned.get(name, ())
            plain = len(assigned) == len(function.stores.get(name, ()))
            if plain and not self.index.writers(function, name):
                values = (self._kind(one.value) for one in assigned)
                found.append((name, indirect(join(*values))))
        return tuple(found)

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


def _is_bound_anew(function: Function, name: ast.Name) -> bool:
    """Return whether a statement that surely ran before a name is read binds it."""
    body = function.node.body if isinstance(function.node.body, list) else []
    for item in body:
        if item.lineno >= name.lineno:
            return False
        for target in item.targets if isinstance(item, ast.Assign) else ():
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            if any(getattr(part, "id", "") == name.id for part in parts):
                return (item.end_lineno or 0) < name.lineno
    return False


def instance(
    given: tuple[Result, ...],
    own: Callable[[str], Kind | None],
    outer: Mapping[str, Kind],
    world: World,
    depth: int = 0,
) -> Kind:
    """Return the result of a function for one call; nothing where its arguments are unknown.

    ``own``: the argument of a parameter; ``outer``: that of a parameter of the enclosing function.
    """
    found: list[Kind] = []
    for result in given:
        value = _instance(result, own, outer, world, depth)
        if value is None:
            return NOTHING
        found.append(value)
    return join(*found)


def _instance(
    result: Result,
    own: Callable[[str], Kind | None],
    outer: Mapping[str, Kind],
    world: World,
    depth: int,
) -> Kind | None:
    if result.closes:
        passed = tuple((name, own(name), more) for name, more in result.closes)
        known = tuple((name, join(kind, more)) for name, kind, more in passed if kind is not None)
        return frozenset(_closing(atom, known, world) for atom in result.kind)
    if not result.parameter:
        return result.kind
    given = outer.get(result.parameter, result.kind) if result.outer else own(result.parameter)
    if given is None:
        return None
    value = _at(result.kind, given)
    if not result.called or not value:
        return value
    args = [_instance(arg, own, outer, world, depth) for arg in result.args]
    return given_by(without_none(value), world, args, depth + 1)


def _closing(atom: Atom, known: tuple[tuple[str, Kind], ...], world: World) -> Atom:
    """Return a function that remembers what the call that defined it was passed."""
    if atom.kind != "function" or not any(r.outer or any(a.outer for a in r.args)
                                          for r in _results_of(atom, world)):  # fmt: skip
        return atom
    names = tuple(name for name, _ in known)
    return atom._replace(items=tuple(shallow(kind) for _, kind in known), keys=names)


def _results_of(atom: Atom, world: World) -> tuple[Result, ...]:
    function = world.function_of(atom.name)
    return world.results_of(function) if function is not None else ()


def closed_over(atom: Atom) -> dict[str, Kind]:
    """Return what a function remembers of the call that defined it."""
    return dict(zip(atom.keys, atom.items, strict=True)) if atom.kind == "function" else {}


def _at(place: Kind, given: Kind) -> Kind:
    """Return what of a passed value may be at a place that tests or annotations lead to."""
    names = {a.kind for a in place}
    rest = without_none(given)
    kept = frozenset(a for a in rest if a.kind in names or "unknown" in names)
    kept = frozenset().union(*(_as_left(atom, place) for atom in kept))
    if rest and (not kept or (kept >= UNKNOWN and "unknown" not in names)):
        kept = join(kept - UNKNOWN, without_none(place))
    return kept | NONE if rest != given and "None" in names else kept


def _as_left(atom: Atom, place: Kind) -> Kind:
    """Return a container as the function leaves it, with all that any call has put in."""
    held = atom.items if atom.kind == "tuple" else ()
    if not contents.is_container(atom) and all(map(contents.is_plain, held)):
        return frozenset((atom,))
    return frozenset(a for a in place if (a.kind, a.name) == (atom.kind, atom.name)) or UNKNOWN


def passed(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return the argument bound to a parameter, or None if it is passed by ``*args``."""
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


def given_by(callee: Kind, world: World, args: Sequence[Kind | None] = (), depth: int = 0) -> Kind:
    """Return the result of calling something, with such positional arguments or any others."""
    found = []
    for atom in ordered(callee):
        function = world.function_of(atom.name) if atom.kind in ("function", "method") else None
        if function is not None:
            found.append(_given_by_function(function, atom, world, args, depth))
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


def _given_by_function(
    function: Function, atom: Atom, world: World, args: Sequence[Kind | None], depth: int
) -> Kind:
    names = parameter_names(function)

    def own(name: str) -> Kind | None:
        place = names.index(name)
        return args[place] if place < len(args) else None

    found = NOTHING
    if depth < DEEPEST:
        found = instance(world.results_of(function), own, closed_over(atom), world, depth)
    return found or world.returns(function)
