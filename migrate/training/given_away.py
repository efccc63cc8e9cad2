"""In: a statement between a Module's call and its backward. Out: whether it looks through ``self``.

``self.loss = ...`` and then ``self("after_loss")`` or ``self.report()``: what the object holds is
read by code that the statement does not spell, so no order but the written one is right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.program import Function
from migrate.training.effects import reads
from migrate.training.marks import View


def looks_through(view: View, item: ast.stmt, own: str, bound: set[str]) -> bool:
    """Whether the object is handed on, or a method of it is called that reads what is bound.

    ``bound`` are the names that the step has bound so far, attributes as ``self.loss``.
    """
    held = {name.partition(".")[2] for name in bound if name.startswith(f"{own}.")}
    if not own or not held:
        return False
    return own in reads([item], own) or any(
        _reads_any(method, held, frozenset(), view) for method in _called(view, item, own)
    )


def _called(view: View, item: ast.AST, own: str) -> Iterator[Function]:
    """The methods of the program that are called on the object; all of one name may be meant."""
    for node in ast.walk(item):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and getattr(func.value, "id", "") == own:
            for owner in view.inference.program.holders.get(func.attr, ()):
                if func.attr in owner.methods:
                    yield owner.methods[func.attr]


def _reads_any(method: Function, held: set[str], seen: frozenset[str], view: View) -> bool:
    """Whether a method reads one of these attributes, hands itself on, or calls one that does."""
    if method.key in seen or not method.parameters:
        return False
    own = method.parameters[0].arg
    if any(isinstance(n, ast.Attribute) and n.attr in held for n in method.nodes):
        return True
    body = method.node.body
    found = reads(body if isinstance(body, list) else [body], own)
    inner = seen | {method.key}
    return own in found or any(
        _reads_any(other, held, inner, view) for other in _called(view, method.node, own)
    )
