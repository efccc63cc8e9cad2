"""In: shapes in compiled code that the numbers decide. Out: notes with the form of a fixed shape.

They run as they are, but each new shape costs: graph mode compiles for shapes that change, and
Ascend is slow with them. A form of one shape is the user's choice: it gives other values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Outcome
from migrate.receivers.kinds import is_all
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting
from migrate.scene import Scene

_MASK = (
    "as many elements as the mask has: a shape that the numbers decide. With a fixed one:"
    " `ops.where(mask, x, 0)`, and `ops.where(mask, x, 0).sum() / mask.sum()` for a mean"
)
_CALLS = {
    "nonzero": "as many rows as there are: a shape that the numbers decide. With a fixed one, the"
    " first k: `order = ops.topk(mask.astype(ms.float32), k)[1]`, or go on with the mask itself",
    "masked_select": _MASK,
    "unique": "as many as there are: a shape that the numbers decide. With a fixed one:"
    " `s = ops.sort(x)[0]` and `new = s[1:] != s[:-1]`, which of the others are new",
}


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``x[x > 0]``, ``torch.nonzero(x)``, ``x.masked_select(m)``, ``torch.unique(x)``."""
    for node in graph_scope.nodes(scene, ast.Subscript, ast.Call):
        note, name = "", ""
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            if is_all(scene.kind(node.value), "Tensor") and _is_mask(scene, node.slice):
                note, name = _MASK, "x[mask]"
        elif isinstance(node, ast.Call):
            kinds = scene.kind(node.func)
            names = {a.name for a in kinds if a.name.startswith("torch.")}
            called = names.pop().rpartition(".")[2] if len(names) == 1 else ""
            note, name = _CALLS.get(called, ""), f"the shape of {called}"
        if note:
            kept = Edit(scene.site(name, node), Outcome.KEPT, None)
            yield Rewriting(node, (kept,), note, name)


def _is_mask(scene: Scene, index: ast.expr) -> bool:
    """A comparison of Tensors, or a variable that is only ever bound to one."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        return True
    if isinstance(index, ast.Compare):
        return any(is_all(scene.kind(n), "Tensor") for n in (index.left, *index.comparators))
    function = scene.function(index)
    if not isinstance(index, ast.Name) or function is None:
        return False
    bound = [n for n in ast.walk(function.node) if isinstance(n, ast.Assign)
             and any(getattr(t, "id", "") == index.id for t in n.targets)]  # fmt: skip
    return bool(bound) and all(
        isinstance(n.value, ast.Compare) and _is_mask(scene, n.value) for n in bound
    )
