"""Decide whether a mask may have chosen an expression, so that it may be empty.

MindSpore's reductions of no elements give whatever lies in memory; rows with the condition
``selection`` (docs/table.md) are for such operands, and all others keep the plain call.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from migrate.sites.dtypes import KEEPING
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene
from migrate.syntax.trees import last_name

# Reads (by id) that one question has come to. What they are bound to is looked at once: an answer
# is whether anything of it selects, so what was passed already adds nothing.
_Passed = set[int]
_SELECTING = frozenset({"masked_select", "nonzero", "argwhere"})
# Whole numbers as many as elsewhere: they choose an order or a place, not how many.
_COUNTED = frozenset({"randperm", "arange", "argsort", "argmax", "argmin", "randint", "tensor",
                      "multinomial", "linspace"})  # fmt: skip
# Without an axis these leave one number, which is never nothing.
_REDUCING = frozenset({"sum", "mean", "prod", "any", "all", "norm", "std", "var", "max", "min",
                       "amax", "amin", "median", "logsumexp", "argmax", "argmin", "numel",
                       "count_nonzero", "nansum", "nanmean", "item", "dot", "vdot"})  # fmt: skip


_SIZED = frozenset({"zeros", "ones", "empty", "rand", "randn"})
_HOLDING = frozenset({"tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "new_tensor"})
_TRUTH = frozenset(
    "bool eq ne gt lt ge le isnan isinf isfinite isclose logical_and logical_or logical_not "
    "logical_xor".split()
)


def is_selection(scene: Scene, node: ast.expr) -> bool:
    """Whether a Tensor may be one that a mask or a search chose, of a size known only then."""
    return _selects(scene, node, set())


def is_found(scene: Scene, node: ast.expr) -> bool:
    """Whether a Tensor may hold positions that were searched for: ``torch.where(mask)[0]``."""
    return _is_found(scene, node, set())


def _is_found(scene: Scene, node: ast.expr, seen: _Passed) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return any(_is_found(scene, value, seen) for value in _values(scene, node, seen))
    return isinstance(node, ast.Call) and _result_selects(scene, node, set())


def _values(scene: Scene, name: ast.Name, seen: _Passed) -> tuple[ast.expr, ...]:
    """What a name is bound to; nothing where the question has come to it before."""
    if id(name) in seen:
        return ()
    seen.add(id(name))
    return tuple(v for v in scene.facts.values(name, parts=True) if v is not None)


def _selects(scene: Scene, node: ast.expr, seen: _Passed) -> bool:
    if isinstance(node, ast.Name):
        return any(_selects(scene, value, seen) for value in _values(scene, node, seen))
    if isinstance(node, ast.Subscript):
        indices = _indices(node.slice)
        chosen = any(_counts_unknown(scene, one) or _may_be_empty(one) for one in indices)
        return chosen or (_keeps_none(node.slice) and _selects(scene, node.value, seen))
    if isinstance(node, ast.Call):
        return _result_selects(scene, node, seen)
    if isinstance(node, ast.Compare):
        return any(_selects(scene, one, seen) for one in (node.left, *node.comparators))
    if isinstance(node, ast.BinOp):
        sides = [side for side in (node.left, node.right) if _selects(scene, side, seen)]
        return bool(sides) and not (len(sides) == 1 and _is_fitted(scene, node, sides[0]))
    if isinstance(node, ast.UnaryOp):
        return _selects(scene, node.operand, seen)
    if isinstance(node, ast.NamedExpr):
        return _selects(scene, node.value, seen)
    if isinstance(node, ast.IfExp):
        return _selects(scene, node.body, seen) or _selects(scene, node.orelse, seen)
    return isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "data") and (
        _selects(scene, node.value, seen)
    )  # fmt: skip


def _indices(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _may_be_empty(index: ast.expr) -> bool:
    """Whether a slice may take nothing of a dimension that has elements."""
    if not isinstance(index, ast.Slice):
        return False
    start, stop = (_constant(bound) for bound in (index.lower, index.upper))
    from_start = index.lower is None or start == 0
    to_end = index.upper is None
    if from_start:
        return not to_end and (stop is None or stop <= 0)
    if start is None or start > 0 or not to_end:
        return not (start is not None and start < 0 and to_end)
    return False


def _is_fitted(scene: Scene, whole: ast.BinOp, side: ast.expr) -> bool:
    """``x + table[:, :n]``: a slice has as many as the Tensor that it is combined with."""
    other = whole.right if side is whole.left else whole.left
    if "Tensor" not in scene.kind_names(other) or not isinstance(side, ast.Subscript):
        return False
    return not any(_counts_unknown(scene, one) for one in _indices(side.slice))


def _constant(node: ast.expr | None) -> int | None:
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    if isinstance(inner, ast.Constant) and type(inner.value) is int:
        return -inner.value if negative else inner.value
    return None


def _keeps_none(index: ast.expr) -> bool:
    """Of nothing an index takes nothing, unless it takes one: that fails in both frameworks."""
    return not isinstance(_indices(index)[0], ast.Constant) or len(_indices(index)) > 1


def may_choose(scene: Scene, index: ast.expr) -> bool:
    """Whether an index may be a mask; what counts or orders is none."""
    return _counts_unknown(scene, index)


def _combined(scene: Scene, node: ast.expr, seen: frozenset[str]) -> Sequence[ast.expr] | None:
    """Return what a combination of masks is made of, or a variable bound to; None for others."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return [node.operand]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return [node.left, node.right]
    return _all_bound(scene, node) if isinstance(node, ast.Name) and node.id not in seen else None


def is_mask(scene: Scene, index: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an index is a Tensor of truth values for sure."""
    if (parts := _combined(scene, index, seen)) is not None:
        seen |= {index.id} if isinstance(index, ast.Name) else set()
        return bool(parts) and all(is_mask(scene, part, seen) for part in parts)
    if "Tensor" not in scene.kind_names(index):
        return False
    compares = isinstance(index, ast.Compare)
    return compares or (isinstance(index, ast.Call) and last_name(index.func) in _TRUTH)


def is_bytes(scene: Scene, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an expression is a Tensor of uint8 for sure: torch takes such an index for a mask."""
    if (parts := _combined(scene, node, seen)) is not None:
        seen |= {node.id} if isinstance(node, ast.Name) else set()
        return bool(parts) and all(is_bytes(scene, part, seen) for part in parts)
    if not isinstance(node, ast.Call) or "Tensor" not in scene.kind_names(node):
        return False
    last, own = last_name(node.func), getattr(node.func, "value", None)
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "dtype")]
    asked = [g for g in given if direct_name(scene, g) in ("torch.uint8", "torch.ByteTensor")]
    if last in ("byte", "ByteTensor") or asked:
        return True
    return last in KEEPING and isinstance(own, ast.expr) and is_bytes(scene, own, seen)


def _all_bound(scene: Scene, name: ast.Name) -> tuple[ast.expr, ...]:
    """Return what a variable is bound to; nothing where a caller, a loop or the like binds it."""
    values = scene.facts.values(name, parts=True)
    known = tuple(v for v in values if v is not None)
    return known if len(known) == len(values) else ()


def _counts_unknown(scene: Scene, index: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an index is a mask, or positions that were searched for; ``seen``: under way."""
    if isinstance(index, ast.Compare):
        return True
    if isinstance(index, ast.UnaryOp):
        return isinstance(index.op, ast.Invert)
    if _is_counted(scene, index, seen):
        return False
    kinds = scene.kind_names(index)
    return "Tensor" in kinds or ("unknown" in kinds and _may_be_mask(scene, index))


def _may_be_mask(scene: Scene, index: ast.expr) -> bool:
    """Whether something unknown is more than the number that a loop counts."""
    if isinstance(index, ast.Name):
        places = (scene.parent(b.place) for b in scene.facts.reach(index).bindings)
        return any(not isinstance(p, (ast.For, ast.comprehension)) for p in places)
    if isinstance(index, ast.Subscript):  # batch["mask"]
        return isinstance(index.slice, ast.Constant) and isinstance(index.slice.value, str)
    return isinstance(index, (ast.Attribute, ast.Call))


def _is_counted(scene: Scene, value: ast.expr, seen: frozenset[str]) -> bool:
    """Whether whole numbers are as many as was asked for, so that some are there."""
    while isinstance(value, ast.Subscript):  # randperm(n)[:k]
        if any(_counts_unknown(scene, one, seen) for one in _indices(value.slice)):
            return False
        value = value.value
    if isinstance(value, ast.Name) and value.id not in seen:
        values = _all_bound(scene, value)
        return bool(values) and all(_is_counted(scene, v, seen | {value.id}) for v in values)
    return isinstance(value, ast.Call) and last_name(value.func) in _COUNTED


def _result_selects(scene: Scene, call: ast.Call, seen: _Passed) -> bool:
    """What torch makes of a selection has as many elements, unless it is reduced to one."""
    kinds = scene.kind(call.func)
    of_torch = any(a.kind in ("ref", "method") and a.name.startswith("torch.") for a in kinds)
    func = call.func
    method = isinstance(func, ast.Attribute) and "Tensor" in scene.kind_names(func.value)
    if not (of_torch or method):
        return False
    name = last_name(call.func)
    if name in _SELECTING:
        return True
    if name in _SIZED and any(isinstance(n, ast.Constant) and n.value == 0 for n in _sizes(call)):
        return True
    if name in _HOLDING and any(isinstance(n, ast.List) and not n.elts for n in call.args):
        return True
    operands = [func.value] if method and isinstance(func, ast.Attribute) else []
    operands += call.args
    if name == "where" and len(call.args) == 1 and not call.keywords and not method:
        return True
    if name in _REDUCING and len(operands) == 1 and not call.keywords:
        return False
    if name.endswith("_loss") or name in ("cross_entropy", "kl_div", "item"):
        return _unreduced(call) and any(_selects(scene, one, seen) for one in operands[:2])
    return any(_selects(scene, one, seen) for one in operands)


def _sizes(call: ast.Call) -> list[ast.expr]:
    """``0, 3`` of ``zeros(0, 3)`` and ``zeros((0, 3))``."""
    return [n for a in call.args for n in (_indices(a) if isinstance(a, ast.Tuple) else [a])]


def _unreduced(call: ast.Call) -> bool:
    return any(
        k.arg == "reduction" and isinstance(k.value, ast.Constant) and k.value.value == "none"
        for k in call.keywords
    )
