"""In: a test of the text of a class's name. Out: the variable it asks about, the classes meant.

``name = m.__class__.__name__`` and then ``name.find("Conv") != -1``, ``"Conv" in name``,
``name.startswith("Conv")``, ``name == "Conv2d"``: the ways in which code that initializes weights
asks what a Module is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from migrate.program import Function, Program
from migrate.table import Table

_SPACE = "torch.nn."


@dataclass(frozen=True)
class Asked:
    """``subject`` is the variable whose class is asked for, ``text`` what its name is held
    against, ``how`` the comparison: "in", "start" or "is"."""

    subject: str
    text: ast.Constant
    how: str

    def meets(self, name: str) -> bool:
        """Whether a class of this name is meant."""
        text = str(self.text.value)
        if self.how == "is":
            return name == text
        return name.startswith(text) if self.how == "start" else text in name


def asked(test: ast.expr, function: ast.AST | None) -> tuple[Asked, ...]:
    """What a test that holds tells: the alternatives of one variable; nothing for other tests."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        parts = [asked(value, function) for value in test.values]
        found = tuple(a for part in parts for a in part)
        return found if all(parts) and len({a.subject for a in found}) == 1 else ()
    for subject, text, how in _comparisons(test):
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value:
            name = _subject(subject, function)
            return (Asked(name, text, how),) if name else ()
    return ()


def _comparisons(test: ast.expr) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """What may be the text of a class, what it is held against, and how."""
    if _calls(test, "startswith"):
        yield test.func.value, test.args[0], "start"
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(operator, ast.In):
        yield right, left, "in"
    elif isinstance(operator, ast.Eq):
        yield left, right, "is"
        yield right, left, "is"
    elif (type(operator), ast.unparse(right)) in _FOUND and _calls(left, "find"):
        yield left.func.value, left.args[0], "in"


def _calls(node: ast.expr, method: str) -> TypeGuard[_Method]:
    """Whether a method is called with one argument."""
    named = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == method
    return named and len(getattr(node, "args", ())) == 1


class _Method(ast.Call):
    """A call of a method."""

    func: ast.Attribute


_FOUND = {(ast.NotEq, "-1"), (ast.Gt, "-1"), (ast.GtE, "0")}


def _subject(node: ast.expr, function: ast.AST | None) -> str:
    """The variable m of ``m.__class__.__name__`` and ``type(m).__name__``, or of a name for it."""
    if isinstance(node, ast.Name) and function is not None:
        values = _bound(node.id, function)
        return _subject(values[0], None) if len(values) == 1 and values[0] is not None else ""
    if not isinstance(node, ast.Attribute) or node.attr != "__name__":
        return ""
    holder = node.value
    if isinstance(holder, ast.Attribute) and holder.attr == "__class__":
        owner: ast.expr | None = holder.value
    elif isinstance(holder, ast.Call) and getattr(holder.func, "id", "") == "type":
        owner = holder.args[0] if len(holder.args) == 1 else None
    else:
        owner = None
    return owner.id if isinstance(owner, ast.Name) else ""


def _bound(name: str, function: ast.AST) -> list[ast.expr | None]:
    """All that a function binds a name to; None for what is no plain assignment."""
    found: list[ast.expr | None] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            found += [node.value for t in node.targets if getattr(t, "id", "") == name]
    stores = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    return found if len(stores) == len(found) else [None]


def of_layers(node: ast.AST, function: Function | None, table: Table) -> Asked | None:
    """The question that one comparison asks of the name of a class, where layers are meant."""
    if not isinstance(node, (ast.Compare, ast.Call)):
        return None
    told = asked(node, function.node if function else None)
    return next((a for a in told if any(map(a.meets, layers(table)))), None)


def named(table: Table, program: Program) -> frozenset[str]:
    """The layers of torch.nn that the files spell, by their short names."""
    if "layers spelled" not in program.notes:
        nodes = [n for file in program.files.values() for n in file.nodes]
        spelled = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        spelled |= {n.id for n in nodes if isinstance(n, ast.Name)}
        program.notes["layers spelled"] = frozenset(spelled) & frozenset(layers(table))
    found: frozenset[str] = program.notes["layers spelled"]
    return found


def layers(table: Table) -> Iterator[str]:
    """The classes of torch.nn with a row, by their short names."""
    for name in table.names:
        short = name.removeprefix(_SPACE)
        if name.startswith(_SPACE) and "." not in short and short[:1].isupper():
            yield short


def meant(tests: tuple[Asked, ...], table: Table, program: Program) -> frozenset[str]:
    """The layers that tests mean: those that the files spell.

    All of them where they spell none of these: another package builds the network.
    """
    found = {s for s in layers(table) if any(a.meets(s) for a in tests)}
    used = found & named(table, program) or {s for s in found if not s.startswith("Lazy")}
    return frozenset(_SPACE + s for s in used)
