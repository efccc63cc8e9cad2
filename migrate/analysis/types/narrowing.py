"""In: the kind of a variable and the classes of ``isinstance``. Out: its kind where that is true.

Known alternatives stay known: of a class or a text, ``isinstance(x, type)`` leaves the class. Only
unknown alternatives become instances of the tested classes.
"""

from __future__ import annotations

import ast

from migrate.analysis.types import values
from migrate.analysis.types.kinds import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    join,
    kind,
)
from migrate.analysis.types.world import World

_PLAIN = frozenset({"class", "function", "partial", "callable", "str", "int", "float", "bool",
                    "None", "list", "tuple", "dict", "Tensor", "Size"})  # fmt: skip
# the kinds that are surely instances of a class, by its name
_INSTANCES = {
    "type": ("class", "callable"), "str": ("str",), "int": ("int", "bool"), "float": ("float",),
    "bool": ("bool",), "list": ("list",), "tuple": ("tuple", "Size"), "dict": ("dict",),
    "torch.Tensor": ("Tensor",), "torch.Size": ("Size",), "functools.partial": ("partial",),
    "types.FunctionType": ("function",),
}  # fmt: skip
_CALLED = frozenset({"class", "function", "method", "partial", "callable", "builtin", "Module"})
_NEVER_CALLED = frozenset({"str", "int", "float", "bool", "None", "list", "tuple", "dict", "Tensor",
                           "Size", "device", "dtype", "iterator"})  # fmt: skip
_BUILTINS = {"int": INT, "float": FLOAT, "str": STR, "bool": BOOL, "list": kind("list"),
             "tuple": kind("tuple"), "dict": kind("dict")}  # fmt: skip


def holding(value: Kind, tested: Kind, world: World) -> Kind:
    """What a value is that is an instance of the tested classes; nothing where none is known."""
    found = _instances(tested, world)
    names = {a.name for a in _each(tested)}
    if not found:
        return NOTHING
    sure = {k for n in names for k in _INSTANCES.get(n, ())}
    # of an abstract class lists and texts may be instances, of a Module's they are not
    known = names <= _INSTANCES.keys() or all(a.kind == "Module" for a in found)
    kept = [frozenset((a,)) for a in value if a.kind in _PLAIN and (a.kind in sure or not known)]
    if any(a.kind not in _PLAIN for a in value):
        kept.append(found)
    return join(*kept) or found


def failing(value: Kind, tested: Kind, world: World) -> Kind:
    """What a value is that is no instance of the tested classes."""
    if not _instances(tested, world):
        return value
    sure = {k for a in _each(tested) for k in _INSTANCES.get(a.name, ())}
    return frozenset(a for a in value if a.kind not in sure) or UNKNOWN


def called(value: Kind, holds: bool) -> Kind:
    """Return what may be, or may not be, ``callable``."""
    apart = _NEVER_CALLED if holds else _CALLED
    return frozenset(a for a in value if a.kind not in apart)


def _each(tested: Kind) -> list[Atom]:
    found: list[Atom] = []
    for atom in tested:
        if atom.kind == "tuple":
            found += [a for item in atom.items for a in _each(item)]
        else:
            found.append(atom)
    return found


def _instances(tested: Kind, world: World) -> Kind:
    found = [_instance(atom, world) for atom in _each(tested)]
    return join(*found) if all(found) else NOTHING


def _instance(atom: Atom, world: World) -> Kind:
    """What an instance of a class is; nothing where it is not known to be a class."""
    if atom.kind == "ref" and atom.name == "torch.Tensor":
        return TENSOR
    if atom.kind in ("ref", "class"):
        return values.instance_of(atom, (), world)
    if atom.kind == "builtin":
        return _BUILTINS.get(atom.name, UNKNOWN)
    if atom.kind == "foreign":
        return kind("partial" if atom.name == "functools.partial" else "instance", atom.name)
    return NOTHING


def is_whole(part: ast.MatchAs, pattern: ast.pattern) -> bool:
    """Return whether a capture takes all that is matched, not a part of it."""
    while isinstance(pattern, ast.MatchAs):
        if pattern is part:
            return True
        if pattern.pattern is None:
            return False
        pattern = pattern.pattern
    return False
