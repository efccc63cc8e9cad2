"""In: a call of ``x.type`` that asks for, or goes by, a name of a type. Out: the same with dtypes.

``a.type() != b.type()``, ``a.type() == "torch.FloatTensor"`` and ``a.type(b.type())``: torch's
names of tensor types are dtypes here. A name that goes elsewhere is flagged.
"""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import having
from migrate.codegen.substitution import piece
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Outcome, Refusal, Site
from migrate.sites.scene import Scene

NAME = "torch.Tensor.type"
_DTYPES = {
    "torch.FloatTensor": "float32", "torch.DoubleTensor": "float64", "torch.HalfTensor": "float16",
    "torch.LongTensor": "int64", "torch.IntTensor": "int32", "torch.ShortTensor": "int16",
    "torch.CharTensor": "int8", "torch.ByteTensor": "uint8", "torch.BoolTensor": "bool_",
    "torch.BFloat16Tensor": "bfloat16",
}  # fmt: skip


def type_name(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Decide about one call of ``type``, without an argument or with a name."""
    row, around = chosen.row, scene.parent(call)
    assert receiver is not None
    whole = Site(site.name, scene.source.span(call), site.line, site.column)
    held = piece(scene.source, receiver)
    if call.args or call.keywords:
        wanted = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if wanted is not None and _asks(scene, wanted):
            parts = (held, ".astype(", piece(scene.source, wanted), ")")
            return Edit(whole, Outcome.CONVERTED, parts, row.key)
    elif isinstance(around, ast.Call) and _takes(scene, around, call):
        return Edit(whole, Outcome.CONVERTED, (held, ".dtype"), row.key)
    elif isinstance(around, ast.Compare) and (other := _other_side(around, call)) is not None:
        if _asks(scene, other):
            return Edit(whole, Outcome.CONVERTED, (held, ".dtype"), row.key)
        dtype = _DTYPES.get(str(getattr(other, "value", "")))
        if dtype and call is around.left:
            text, root = scene.spelling.local(f"mindspore.{dtype}")
            sign = " == " if isinstance(around.ops[0], ast.Eq) else " != "
            place = Site(site.name, scene.source.span(around), site.line, site.column)
            same = (held, ".dtype", sign, text)
            return Edit(place, Outcome.CONVERTED, same, row.key, frozenset((root,)))
    reason = "names of tensor types ('torch.FloatTensor') do not exist in MindSpore"
    return Refusal(site, "DTY107", reason, "use dtypes: x.astype(mindspore.float32), x.dtype")


def _asks(scene: Scene, node: ast.expr) -> bool:
    """Whether it is ``x.type()`` of a Tensor."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return _is_type(scene, node.func)


def _takes(scene: Scene, around: ast.Call, name: ast.Call) -> bool:
    """Whether a name is the argument of ``y.type(...)``."""
    alone = around.args == [name] and not around.keywords
    return alone and _is_type(scene, around.func)


def _is_type(scene: Scene, func: ast.expr) -> bool:
    """Whether it is the method of what is a Tensor, if it is known at all."""
    if not isinstance(func, ast.Attribute) or func.attr != "type":
        return False
    kinds = {atom.kind for atom in having(scene.kind(func.value), "type")}
    return "Tensor" in kinds and kinds <= {"Tensor", "unknown"}


def _other_side(around: ast.Compare, call: ast.Call) -> ast.expr | None:
    if len(around.ops) != 1 or not isinstance(around.ops[0], (ast.Eq, ast.NotEq)):
        return None
    return around.comparators[0] if around.left is call else around.left
