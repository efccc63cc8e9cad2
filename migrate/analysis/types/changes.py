"""Find the effects of one call on the scope of the call, by the kinds of its parts."""

from __future__ import annotations

import ast

from migrate.analysis.callgraph import CONSTRUCTORS, Targets
from migrate.analysis.program import Function
from migrate.analysis.summaries import ANY, NO_CHANGES, Changes, Summaries
from migrate.analysis.types.kinds import UNKNOWN, Atom, Kind
from migrate.analysis.types.world import World

# what torch, Python or numpy define; it runs no code of the program but its arguments
_PLAIN = frozenset(
    "ref str int float bool list tuple dict Size None dtype device Tensor iterator text alias "
    "Optimizer torch builtin foreign project super annotated".split()
)


def of_call(call: ast.Call, world: World, summaries: Summaries) -> Changes:
    """Return what an evaluated call may change: attributes, contents of variables, outer names."""
    callee = world.kinds.get(id(call.func), UNKNOWN)
    bound = isinstance(call.func, ast.Attribute) and not any(
        a.kind in ("class", "project") for a in world.kinds.get(id(call.func.value), ())
    )
    changed = NO_CHANGES
    for atom in callee:
        targets = _targets(atom, bound, world)
        effects = [world.effects(f) for f in targets.functions]
        if targets.unseen or any(e.unknown for e in effects):
            world.unseen()
        changed |= summaries.bound(call, targets)
    for value in (*call.args, *(k.value for k in call.keywords)):
        changed |= _called_back(value, callee, world)
    return changed


def _targets(atom: Atom, bound: bool, world: World) -> Targets:
    """Return the functions that calling one alternative may run."""
    function = world.function_of(atom.name) if atom.kind in ("function", "method") else None
    if function is not None:
        return Targets((function,), bound=bound and function.owner is not None)
    if atom.kind == "class":
        functions = [_member(atom.name, name, world) for name in CONSTRUCTORS]
        return Targets(tuple(f for some in functions for f in some), bound=True, constructs=True)
    if atom.kind in ("Module", "Object") and "::" in atom.name:
        called = (*_member(atom.name, "forward", world), *_member(atom.name, "__call__", world))
        return Targets(called, bound=True, unseen=not called)
    if atom.kind == "Module" and atom.name not in ("", "torch.nn.Module"):
        # layers of torch call what they hold
        return Targets(unseen=bool(atom.items) or atom.name in _HOLDING)
    return _NO_TARGETS if atom.kind in _PLAIN or _is_of_python(atom) else _UNSEEN


_NO_TARGETS, _UNSEEN = Targets(), Targets(unseen=True)


_HOLDING = ("torch.nn.Sequential", "torch.nn.DataParallel", "torch.nn.ModuleList")


def _is_of_python(atom: Atom) -> bool:
    """Whether it is a method of torch's, of Python's or of a library's objects."""
    return atom.kind == "method" or (atom.kind == "instance" and bool(atom.name))


def _member(key: str, name: str, world: World) -> tuple[Function, ...]:
    found = (world.function_of(a.name) for a in world.member(key, name) if a.kind == "method")
    return tuple(f for f in found if f is not None)


def _called_back(value: ast.expr, callee: Kind, world: World) -> Changes:
    """Return what the callee may change by calling an argument, or methods of it."""
    changed = NO_CHANGES
    for atom in world.kinds.get(id(value), UNKNOWN):
        function = world.function_of(atom.name) if atom.kind in ("function", "method") else None
        if function is not None:
            effects = world.effects(function)
            seen = world.unseen() if effects.unknown else effects
            changed |= Changes(effects.written, rebound=effects.rebound)
            changed |= Changes(seen.written, rebound=seen.rebound)
        owner = world.class_of(atom.name) if atom.kind in ("Module", "Object") else None
        if owner is not None and any(_is_foreign(a) for a in callee):
            world.classes()
            changed |= Changes(frozenset((*owner.stores, ANY)))
    return changed


def _is_foreign(atom: Atom) -> bool:
    """Whether it is of a library other than torch and Python's own."""
    return atom.kind in ("foreign", "instance") and not atom.name.startswith(
        ("math.", "copy.", "typing.", "numpy.", "builtins.", "logging.", "warnings.", "time.")
    )
