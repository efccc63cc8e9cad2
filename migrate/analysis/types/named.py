"""In: an expression that names an attribute. Out: a pattern of the texts that it may give.

``getattr(self, f"layer{i}")`` reads what ``setattr(self, f"layer{i}", x)`` has bound, or what is
written out as ``self.layer0``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from migrate.analysis.program import Function
from migrate.syntax.trees import all_parameters

EVERY = ".*"


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
