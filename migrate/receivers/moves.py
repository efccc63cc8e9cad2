"""In: an assignment. Out: the names whose object it only moves, the comprehension it moves from.

``x = x.to(device)`` leaves x what it was: what is known of x afterwards was true before.
"""

from __future__ import annotations

import ast

# methods of both Tensors and Modules that give the same kind of object
_SAME = frozenset(
    ("to", "cuda", "cpu", "float", "double", "half", "bfloat16", "requires_grad_", "train", "eval")
)

INSIDE = "[]"  # behind a name: what its elements hold


def of_itself(node: ast.Assign) -> dict[str, ast.Call]:
    """Names bound to themselves moved (``x, y = x.to(device), y.to(device)``), with the call."""
    found = {}
    for target, value in _pairs(node):
        call = _moving(value)
        if call is not None and isinstance(target, ast.Name) and _name(call) == target.id:
            found[target.id] = call
    return found


def of_elements(node: ast.Assign) -> dict[str, tuple[int, ast.Call]]:
    """Names bound to containers of moved elements: the id of the element's target, the call.

    In ``batch = {k: v.to(device) for k, v in batch.items()}`` what batch holds is what v was.
    For a list of such dictionaries the name is ``batch[]``: its elements hold what v was.
    """
    value, inside = _listed(node.value), ""
    made = getattr(value, "value", None) or getattr(value, "elt", None)
    if isinstance(made, (ast.DictComp, ast.ListComp)):
        value, inside = made, INSIDE
        made = value.value if isinstance(value, ast.DictComp) else value.elt
    generators = getattr(value, "generators", ())
    call = _moving(made) if isinstance(made, ast.expr) and len(generators) == 1 else None
    if call is None:
        return {}
    bound = [n for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    origin = next((id(n) for n in bound if n.id == _name(call)), None)
    if origin is None:
        return {}
    targets = [n for t in node.targets for n in getattr(t, "elts", [t])]
    return {n.id + inside: (origin, call) for n in targets if isinstance(n, ast.Name)}


def _listed(node: ast.expr) -> ast.expr:
    """``list(x.to(device) for x in items)`` holds what its generator gives."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("list", "tuple"):
        return node.args[0] if len(node.args) == 1 and not node.keywords else node
    return node


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    target = node.targets[0]
    if len(node.targets) == 1 and isinstance(target, ast.Tuple):
        values = node.value.elts if isinstance(node.value, ast.Tuple) else []
        return (
            list(zip(target.elts, values, strict=True)) if len(values) == len(target.elts) else []
        )
    return [(t, node.value) for t in node.targets]


def _moving(node: ast.expr) -> ast.Call | None:
    """The call of a method on a name that gives the same object elsewhere."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in _SAME:
            return None
        if isinstance(node.func.value, ast.Name):
            return node
        node = node.func.value
    return None


def _name(call: ast.Call) -> str:
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    return holder.id if isinstance(holder, ast.Name) else ""
