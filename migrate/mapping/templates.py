"""Read the templates of rows: Python expressions over parameters, parsed once."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from functools import lru_cache

from migrate.syntax.trees import within

NO_VALUE = object()
# packages without torch whose classes stand for some of torch's: a row may name them
LIBRARIES = frozenset({"tensorboardX"})
_ROOTS = ("mindspore", "helpers", *LIBRARIES)


@lru_cache(maxsize=4096)
def parse(template: str) -> ast.expr:
    """A template as an expression. Raises SyntaxError."""
    return ast.parse(template.strip(), mode="eval").body


@lru_cache(maxsize=4096)
def names(template: str) -> frozenset[str]:
    """Every name in a template."""
    nodes = ast.walk(parse(template)) if template else ()
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name))


@lru_cache(maxsize=16384)
def names_in(node: ast.expr) -> tuple[str, ...]:
    """The names in a part of a template, as often as they are there."""
    return tuple(n.id for n in within(node) if isinstance(n, ast.Name))


def is_closed(template: str) -> bool:
    """Whether a template says all by itself: it holds no argument and no receiver."""
    return all(n in _ROOTS or hasattr(builtins, n) for n in names(template))


def constant(node: ast.expr, defaults: Mapping[str, str | None]) -> object:
    """The value of a constant expression over parameter defaults; a marker where it has none."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        text = defaults.get(node.id)
        return NO_VALUE if text is None else constant(ast.parse(text, mode="eval").body, {})
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        value = constant(node.operand, defaults)
        if value is NO_VALUE:
            return value
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(value, (int, float)) else NO_VALUE
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = constant(node.left, defaults), constant(node.right, defaults)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return left + right if isinstance(node.op, ast.Add) else left - right
    if isinstance(node, ast.Tuple):
        items = [constant(e, defaults) for e in node.elts]
        return NO_VALUE if NO_VALUE in items else tuple(items)
    return NO_VALUE
