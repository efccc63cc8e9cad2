"""In: the text of a template or a default. Out: its expression, its dotted name, its value."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from functools import lru_cache

NO_VALUE = object()
_ROOTS = ("mindspore", "helpers")


@lru_cache(maxsize=4096)
def parse(template: str) -> ast.expr:
    """A template as an expression. Raises SyntaxError."""
    return ast.parse(template.strip(), mode="eval").body


@lru_cache(maxsize=4096)
def names(template: str) -> frozenset[str]:
    """Every name in a template."""
    nodes = ast.walk(parse(template)) if template else ()
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name))


def is_closed(template: str) -> bool:
    """Whether a template says all by itself: it holds no argument and no receiver."""
    return all(n in _ROOTS or hasattr(builtins, n) for n in names(template))


def dotted(node: ast.expr) -> str | None:
    """ "mindspore.nn.ReLU" for such a chain of names, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


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
