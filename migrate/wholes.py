"""In: a call in an analysed file. Out: whether its numbers are cut to whole ones later on.

MindSpore's logarithms are off by some hundred units in the last place on CPU: nobody sees it in a
loss, but ``log2(8).floor()`` is 2. Rows with the condition ``made whole`` (docs/table.md) are for
such calls. What is not seen: a number that is handed to another function and cut there.
"""

from __future__ import annotations

import ast

from migrate.scene import Scene

_CUTTING = frozenset({"floor", "floor_", "ceil", "ceil_", "trunc", "trunc_", "fix", "round",
                      "round_", "long", "int", "short", "floor_divide", "bucketize"})  # fmt: skip
_CASTING = frozenset({"to", "type", "astype"})
_WHOLE_DTYPES = frozenset({"long", "int", "short", "int8", "int16", "int32", "int64", "uint8"})
# what gives its operand on, more or less as it was
_PASSING = frozenset(
    """
    abs add clamp clamp_ clamp_max clamp_min clip clone contiguous cpu detach div double expand
    flatten float item max maximum min minimum mul neg permute reshape squeeze stack cat sub
    transpose unsqueeze view where
    """.split()
)


def is_made_whole(scene: Scene, node: ast.expr) -> bool:
    """Whether the value of ``node``, or what is computed of it at once, loses its fraction."""
    return _cut(scene, node, frozenset())


def _cut(scene: Scene, node: ast.expr, seen: frozenset[str]) -> bool:
    parent = scene.parent(node)
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.FloorDiv) or _cut(scene, parent, seen)
    if isinstance(parent, (ast.UnaryOp, ast.IfExp, ast.Subscript, ast.Tuple, ast.List)):
        return _cut(scene, parent, seen)
    if isinstance(parent, ast.keyword):
        call = scene.parent(parent)
        return isinstance(call, ast.Call) and _called(scene, call, call.func, seen)
    if isinstance(parent, ast.Call) and node is not parent.func:
        return _called(scene, parent, parent.func, seen)
    if isinstance(parent, ast.Attribute):
        call = scene.parent(parent)
        return isinstance(call, ast.Call) and _called(scene, call, parent, seen)
    if isinstance(parent, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return any(_read_whole(scene, t, seen) for t in targets if isinstance(t, ast.Name))
    return False


def _called(scene: Scene, call: ast.Call, func: ast.expr, seen: frozenset[str]) -> bool:
    """A value goes into a call, as an argument or as what a method is called of."""
    last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if last in _CASTING:
        given = [*call.args, *(k.value for k in call.keywords)]
        return any(_is_whole_dtype(one) for one in given)
    return last in _CUTTING or (last in _PASSING and _cut(scene, call, seen))


def _is_whole_dtype(node: ast.expr) -> bool:
    last = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return last in _WHOLE_DTYPES


def _read_whole(scene: Scene, target: ast.Name, seen: frozenset[str]) -> bool:
    """Whether the name that holds the value is cut anywhere in its function."""
    function = scene.function(target)
    if target.id in seen:
        return False
    nodes = ast.walk(function.node) if function is not None else scene.file.nodes
    return any(
        _cut(scene, node, seen | {target.id})
        for node in nodes
        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
    )
