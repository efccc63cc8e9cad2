"""What calls pass to functions: the variables that an argument may be, hold, or be part of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from migrate.analysis.callgraph import Targets
from migrate.analysis.program import Function
from migrate.syntax.trees import all_parameters, children, is_super

FRESH = frozenset(
    "len int float str bool range isinstance hasattr type id repr print super callable hash sum "
    "issubclass format ord chr abs round".split()
)
_NONE: frozenset[str] = frozenset()
Roots = Callable[[ast.AST], frozenset[str]]


class Given(NamedTuple):
    """An argument: caller's names, whether it is one of them itself, attributes that hold it."""

    names: frozenset[str]
    itself: bool
    held: frozenset[str]


@dataclass(frozen=True)
class Passing:
    """What one call passes to one function, by parameter."""

    function: Function
    values: tuple[tuple[str, Given], ...]


def names_in(node: ast.AST, known: dict[int, frozenset[str]]) -> frozenset[str]:
    """Return the variables that a value may be, hold, or be part of; `SUPER` for ``super()``.

    ``known``: what was found before, by the id of a node.
    """
    names = known.get(id(node))
    if names is None:
        names = known[id(node)] = _one_for_all(frozenset(_names_in(node)))
    return names


@lru_cache(maxsize=1 << 14)
def _one_for_all(names: frozenset[str]) -> frozenset[str]:
    """Return one object for equal sets: a large program has very many of few names."""
    return names


def _names_in(node: ast.AST) -> set[str]:
    found: set[str] = set()
    todo = [node]
    for one in todo:
        kind = type(one)
        if kind is ast.Name:
            found.add(one.id)  # type: ignore[attr-defined]
        elif kind is ast.Call:
            name = getattr(one.func, "id", "")  # type: ignore[attr-defined]
            if name == "super":
                found.add(SUPER)
            elif name not in FRESH:
                todo += children(one)
        elif kind not in _NAMELESS:
            todo += children(one)
    return found


SUPER = "super()"
_NAMELESS = frozenset((ast.Constant, ast.Compare, ast.JoinedStr, ast.Lambda))


def arguments(
    function: Function, call: ast.Call, bound: bool
) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each parameter with what a call passes for it; None: it may be any of the arguments.

    ``bound``: the first parameter is the receiver of the call.
    """
    node = function.node.args
    positional = [a.arg for a in (*node.posonlyargs, *node.args)]
    applied = getattr(call.func, "attr", "") == "apply" and function.name == "forward"
    if applied:
        positional = positional[function.context + 1 :]  # ctx comes from torch
    elif bound and function.owner is not None and not function.decorated("staticmethod"):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if positional:
            yield positional[0], receiver
            positional = positional[1:]
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    for index, value in enumerate(call.args):
        if not starred and index < len(positional):
            yield positional[index], value
        elif node.vararg is not None and not starred:
            yield node.vararg.arg, value
    for keyword in call.keywords:
        if keyword.arg is not None:
            known = {*positional, *(a.arg for a in node.kwonlyargs)}
            if keyword.arg in known:
                yield keyword.arg, keyword.value
            elif node.kwarg is not None:
                yield node.kwarg.arg, keyword.value
    if starred or any(k.arg is None for k in call.keywords):
        others = all_parameters(node)[len(node.posonlyargs) + len(node.args) :]
        for name in (*positional, *(a.arg for a in others)):
            for value in (*call.args, *(k.value for k in call.keywords)):
                yield name, value


def passed(
    function: Function, call: ast.Call, targets: Targets, roots: Roots, known: dict[int, Given]
) -> Passing:
    """Return what a call passes to a function; of a new object nothing is passed.

    ``known``: what is known of arguments by the id of their node.
    """
    first = function.parameters[0].arg if function.parameters and targets.constructs else ""
    found = []
    for parameter, value in arguments(function, call, targets.bound):
        if parameter == first:
            continue
        given = _NOTHING_GIVEN if value is None else known.get(id(value))
        if given is None:
            assert value is not None
            names = roots(value)
            itself = len(names) == 1 and (isinstance(value, ast.Name) or is_super(value))
            given = known[id(value)] = Given(names, itself, _held(value))
        found.append((parameter, given))
    return Passing(function, tuple(found))


_NOTHING_GIVEN = Given(_NONE, False, _NONE)


def _held(value: ast.expr) -> frozenset[str]:
    """Return the attribute whose contents are passed: ``grow(self.layers)``."""
    if not isinstance(value, (ast.Attribute, ast.Subscript)):
        return _NONE
    found = set()
    node: ast.expr = value
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        node = node.value
    return frozenset(found)
