"""In: a test of the text of a class's name. Out: the variable that is tested, the classes meant.

``name = m.__class__.__name__`` and then ``name.find("Conv") != -1``, ``"Conv" in name``,
``name.startswith("Conv")``, ``name == "Conv2d"``: the ways in which code that initializes weights
dispatches on the class of a Module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from migrate.analysis.program import Function, Program
from migrate.mapping.table import Table

_SPACE = "torch.nn."


@dataclass(frozen=True)
class Asked:
    """A test of the name of a class: its ``subject`` is the variable whose class is tested,
    ``text`` what the name is compared with, ``how`` the comparison: "in", "start" or "is".
    """

    subject: str
    text: ast.Constant
    how: str

    def meets(self, name: str) -> bool:
        """Whether a class of this name is meant."""
        text = str(self.text.value)
        if self.how == "is":
            return name == text
        return name.startswith(text) if self.how == "start" else text in name


def asked(test: ast.expr, function: Function | None) -> tuple[Asked, ...]:
    """Return the alternatives of one variable that a true test leaves; nothing for other tests."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        parts = [asked(value, function) for value in test.values]
        found = tuple(a for part in parts for a in part)
        return found if all(parts) and len({a.subject for a in found}) == 1 else ()
    return () if is_negative(test) else _questions(test, function)


def _questions(test: ast.expr, function: Function | None) -> tuple[Asked, ...]:
    """Return the test of a comparison, whatever its outcome."""
    found = []
    for subject, text, how in comparisons(test):
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value:
            name = _subject(subject, function)
            found += [Asked(name, text, how)] if name else []
    return tuple(found)


def is_negative(test: ast.expr) -> bool:
    """Return whether a comparison holds where a class is not meant."""
    if not isinstance(test, ast.Compare):
        return False
    if _calls(test.left, "find"):
        return (type(test.ops[0]), ast.unparse(test.comparators[0])) in _MISSED
    return isinstance(test.ops[0], (ast.NotIn, ast.NotEq))


def comparisons(test: ast.expr) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """What may be the text of a class, what it is held against, and how."""
    if _calls(test, "startswith"):
        yield test.func.value, test.args[0], "start"
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if _calls(left, "find") and (type(operator), ast.unparse(right)) in _FOUND | _MISSED:
        yield left.func.value, left.args[0], "in"
    elif isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, _LISTED):
        yield from ((left, one, "is") for one in right.elts)
    elif isinstance(operator, (ast.In, ast.NotIn)):
        yield right, left, "in"
    elif isinstance(operator, (ast.Eq, ast.NotEq)):
        yield left, right, "is"
        yield right, left, "is"


def _calls(node: ast.expr, method: str) -> TypeGuard[_Method]:
    """Whether a method is called with one argument."""
    named = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == method
    return named and len(getattr(node, "args", ())) == 1


class _Method(ast.Call):
    """A call of a method."""

    func: ast.Attribute


_FOUND = {(ast.NotEq, "-1"), (ast.Gt, "-1"), (ast.GtE, "0")}
_MISSED = {(ast.Eq, "-1"), (ast.LtE, "-1"), (ast.Lt, "0")}
_LISTED = (ast.Tuple, ast.List, ast.Set)


def _subject(node: ast.expr, function: Function | None) -> str:
    """The variable m of ``m.__class__.__name__`` and ``type(m).__name__``, or of a name for it."""
    if isinstance(node, ast.Name) and function is not None:
        values = _bound(node.id, function)
        return _subject(values[0], None) if len(values) == 1 and values[0] is not None else ""
    owner = is_taken(node)
    return owner.id if isinstance(owner, ast.Name) else ""


def _bound(name: str, function: Function) -> list[ast.expr | None]:
    """All that a function binds a name to; None for what is no plain assignment."""
    found: list[ast.expr | None] = [node.value for node in function.assigned.get(name, ())]
    return found if len(function.stores.get(name, ())) == len(found) else [None]


def of_layers(node: ast.AST, function: Function | None, table: Table) -> tuple[Asked, ...]:
    """Return the test that a comparison makes of the name of a class, where layers are meant."""
    if not isinstance(node, (ast.Compare, ast.Call)):
        return ()
    told = _questions(node, function)
    return tuple(a for a in told if any(map(a.meets, layers(table))))


def is_taken(node: ast.AST) -> ast.expr | None:
    """The m of ``type(m).__name__``, ``m.__class__.__qualname__`` and ``m._get_name()``."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "_get_name":
        return node.func.value  # type: ignore[attr-defined,no-any-return]
    if not isinstance(node, ast.Attribute) or node.attr not in ("__name__", "__qualname__"):
        return None
    holder = node.value
    if isinstance(holder, ast.Attribute) and holder.attr == "__class__":
        return holder.value
    typed = isinstance(holder, ast.Call) and getattr(holder.func, "id", "") == "type"
    return holder.args[0] if typed and len(holder.args) == 1 else None  # type: ignore[attr-defined]


def named(table: Table, program: Program) -> frozenset[str]:
    """The layers of torch.nn that the files spell, by their short names."""
    if "layers spelled" not in program.notes:
        files = program.files.values()
        spelled = {n.attr for file in files for n in file.of(ast.Attribute)}
        spelled |= {n.id for file in files for n in file.of(ast.Name)}
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
