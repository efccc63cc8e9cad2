"""In: an expression that names an attribute. Out: a pattern of the texts that it may give.

``getattr(self, f"layer{i}")`` reads what ``setattr(self, f"layer{i}", x)`` has bound, or what is
written out as ``self.layer0``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from migrate.analysis.program import Function, Program
from migrate.analysis.storage import COMPUTED, REST
from migrate.syntax.trees import all_parameters

EVERY = ".*"
_BY_NAME = ("getattr", "setattr", "hasattr", "delattr", "__setattr__", "__delattr__")


def may_meet(one: str, other: str) -> bool:
    """Return whether a text may fit two patterns: neither begins as the other cannot."""
    first, second = beginning(one), beginning(other)
    return first.startswith(second) or second.startswith(first)


def beginning(pattern: str) -> str:
    """Return the text that all that fits a pattern begins with."""
    if "|" in pattern:
        return ""
    return re.sub(r"\\(.)", r"\1", re.match(r"(?:\\.|[^\\.(\[*+?])*", pattern)[0])  # type: ignore[index]


def bound_to(function: Function, name: str) -> Iterator[ast.expr | None]:
    """Yield what a function binds a name to; None for what is not written out."""
    known = 0
    for node in function.nodes:
        values: Iterable[ast.expr | None] = ()
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == name for t in node.targets):
            values = (node.value,)
        elif isinstance(node, ast.For) and getattr(node.target, "id", "") == name:
            some = [node.iter]
            if isinstance(node.iter, ast.Name) and node.iter.id != name:
                some = [v or node.iter for v in bound_to(function, node.iter.id)] or some
            lists = all(isinstance(v, (ast.List, ast.Tuple)) for v in some)
            values = [e for v in some for e in getattr(v, "elts", ())] if lists else (None,)
        else:
            continue
        known += 1
        yield from values
    stores = [n for n in function.nodes if isinstance(n, ast.Name) and n.id == name]
    if known != sum(isinstance(n.ctx, ast.Store) for n in stores) or any(
        p.arg == name for p in all_parameters(function.node.args)
    ):
        yield None


def member_name(node: ast.expr) -> str | None:
    """Return a pattern of the names of the attribute that is read; None for what reads none."""
    if isinstance(node, ast.Attribute):
        return re.escape(node.attr)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
        return name_pattern(node.args[1]) if len(node.args) > 1 else None
    return None


def name_pattern(name: ast.expr) -> str:
    """Return a pattern of the texts that an expression may give: ``f"layer{i}"``."""
    if isinstance(name, ast.Constant):
        return re.escape(str(name.value))
    if isinstance(name, ast.JoinedStr):
        return "".join(name_pattern(v) for v in name.values)
    if isinstance(name, ast.BinOp) and isinstance(name.op, ast.Add):
        return name_pattern(name.left) + name_pattern(name.right)
    return EVERY


def attribute_of(name: ast.expr) -> str:
    """Return the attribute that an expression names: its text, or what stands for several."""
    if isinstance(name, ast.Constant):
        return str(name.value)
    return COMPUTED if _says_enough(name) else REST


def _says_enough(name: ast.expr) -> bool:
    """Return whether a computed name is not any at all: it has a part that is written out."""
    pattern = name_pattern(name)
    return pattern != EVERY and re.search(r"\w{3}", pattern.replace("\\", "")) is not None


def computed_names(program: Program) -> dict[str, str]:
    """Map the attributes of a program that a computed name may mean to what stands for these."""
    known: dict[str, str] | None = program.notes.get("computed names")
    if known is None:
        calls = [call for by in _BY_NAME for _, call, _ in program.calls.get(by, ())]
        given = [a for call in calls for a in call.args]  # those of a method come one place earlier
        patterns = {name_pattern(n) for n in given if attribute_of(n) == COMPUTED}
        fits = re.compile("|".join(f"(?:{p})" for p in sorted(patterns)) or r"(?!)")
        names = {n.attr for file in program.files.values() for n in file.of(ast.Attribute)}
        names |= {str(n.value) for n in given if isinstance(n, ast.Constant)}
        known = program.notes["computed names"] = {n: COMPUTED for n in names if fits.fullmatch(n)}
    return known
