"""In: a call of torch.nn.init. Out: the same with a part of a tensor written back, or a flag.

A part of a tensor is a tensor of its own in MindSpore: what fills it leaves the whole as it was.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Piece, Refusal, Site
from migrate.rules import data_attribute
from migrate.rules.alias_walk import findings
from migrate.rules.called_from import call_sites, scene_of
from migrate.rules.inplace import bind_anew
from migrate.rules.torch_sharing import is_view_name, shares
from migrate.rules.views import is_basic
from migrate.rules.written import Holder, target_of
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_parameters


def placed(scene: Scene, name: str, call: ast.Call, edit: Edit | Refusal) -> Edit | Refusal:
    """``init.normal_(p[i])`` is ``p[i] = normal_(p[i].copy())``; other parts are flagged."""
    tensor = _filled(name, call)
    if tensor is None or isinstance(edit, Refusal):
        return edit
    if (whole := _reshaped(scene, call, tensor)) is not None:
        why = "the other arguments are not known one by one"
        return _written_back(scene, call, tensor, whole, edit) or _refused(edit.site, tensor, why)
    if _is_part(scene, call, tensor):
        return _refused(edit.site, tensor, "it is a part or another shape of a tensor")
    made = _item(scene, call, tensor, edit) if isinstance(tensor, ast.Subscript) else edit
    function, held = scene.function(tensor), tensor
    while isinstance(held, ast.Subscript):
        held = held.value
    computed = isinstance(held, ast.Name) and function and function.assigned.get(held.id)
    if computed and not isinstance(made, Refusal) and data_attribute.keeps_gradient(scene, tensor):
        return data_attribute.straight_through(edit.site, tensor)
    if isinstance(tensor, ast.Subscript):
        return made
    lent = _lent_part(scene, tensor)
    if not lent:
        return edit
    why = f"{lent} passes a part of a tensor"
    return replace(_refused(edit.site, tensor, why), code="INP206")


def _filled(name: str, call: ast.Call) -> ast.expr | None:
    """The tensor that a function of torch.nn.init fills."""
    if not name.startswith("torch.nn.init.") or name.rpartition(".")[2].startswith("calculate"):
        return None
    if name.rpartition(".")[2].startswith("_calculate"):
        return None
    named = [k.value for k in call.keywords if k.arg == "tensor"]
    first = next(iter(call.args or named), None)
    return None if isinstance(first, ast.Starred) else first


def _item(scene: Scene, call: ast.Call, part: ast.Subscript, edit: Edit) -> Edit | Refusal:
    target, twice = target_of(scene, part), (ast.Call, ast.NamedExpr, ast.Await, ast.Yield)
    if target.holder is Holder.ELEMENT:
        if id(call) not in findings(scene, scene.function(call)).parts:
            return edit  # of a list: a tensor of its own
        return _refused(edit.site, part, "what holds it may hold parts of a tensor")
    if target.holder in (Holder.TEMPORARY, Holder.VIEW) or not is_basic(scene, part.slice):
        return _refused(edit.site, part, "nothing tells whether the index makes a view or a copy")
    if any(isinstance(node, twice) for node in ast.walk(part)):
        return _refused(edit.site, part, "its index would be computed twice")
    if edit.parts is None or edit.site.span != scene.source.span(call):
        return _refused(edit.site, part, "the other arguments are not known one by one")
    if not isinstance(scene.parent(call), ast.Expr):
        return _refused(edit.site, part, "its value is used as well")
    copied: list[str | Piece] = []
    for old in edit.parts:
        whole = isinstance(old, Piece) and old.span == scene.source.span(part)
        copied += [old, ".copy()"] if whole else [old]
    return bind_anew(scene, call, (piece(scene.source, part),), replace(edit, parts=tuple(copied)))


def _is_part(scene: Scene, call: ast.Call, tensor: ast.expr) -> bool:
    """A view by its form, or a variable that may hold one."""
    while isinstance(tensor, ast.Attribute) and tensor.attr == "data":
        tensor = tensor.value
    if isinstance(tensor, ast.Name):
        return id(call) in findings(scene, scene.function(call)).parts
    if isinstance(tensor, ast.Attribute):
        return is_view_name(tensor.attr) and is_all(scene.kind(tensor.value), "Tensor")
    if not isinstance(tensor, ast.Call) or not isinstance(tensor.func, ast.Attribute):
        return False
    held = tensor.func.value
    return (
        isinstance(held, (ast.Name, ast.Attribute, ast.Subscript))
        and is_all(scene.kind(held), "Tensor")
        and tensor.func.attr not in ("detach", "cpu", "cuda", "to", "contiguous")
        and shares(f"torch.Tensor.{tensor.func.attr}")
    )


def _reshaped(scene: Scene, call: ast.Call, tensor: ast.expr) -> ast.expr | None:
    """Return the tensor that ``w.view(...)`` shows in another shape, its elements in that order."""
    func = tensor.func if isinstance(tensor, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr not in ("view", "unsqueeze", "squeeze"):
        return None
    named = isinstance(func.value, (ast.Name, ast.Attribute))
    sure = named and is_all(scene.kind(func.value), "Tensor")
    return func.value if sure and isinstance(scene.parent(call), ast.Expr) else None


def _written_back(
    scene: Scene, call: ast.Call, tensor: ast.expr, whole: ast.expr, edit: Edit
) -> Edit | None:
    """``init.normal_(w.view(n))`` is ``assign(w, normal_(w.view(n).copy()).reshape(w.shape))``."""
    if edit.parts is None or edit.site.span != scene.source.span(call):
        return None
    shown = scene.source.span(tensor)
    text, root = scene.spelling.local("helpers.assign")
    held = piece(scene.source, whole)
    copied: list[str | Piece] = []
    for old in edit.parts:
        copied += [old, ".copy()"] if isinstance(old, Piece) and old.span == shown else [old]
    parts = (f"{text}(", held, ", ", *copied, ".reshape(", held, ".shape))")
    return replace(edit, parts=parts, needs=edit.needs | {root})


def _lent_part(scene: Scene, tensor: ast.expr) -> str:
    """Where a caller of the function passes a part of a tensor for this parameter; "": nowhere."""
    function = scene.function(tensor)
    if function is None or not isinstance(tensor, ast.Name):
        return ""
    if tensor.id not in (p.arg for p in all_parameters(function.node.args)):
        return ""
    for file, call, caller in call_sites(scene, function):
        if id(call) in findings(scene_of(scene, file), caller).parts:
            return f"{file.path}:{call.lineno}"
    return ""


def _refused(site: Site, part: ast.expr, why: str) -> Refusal:
    text = ast.unparse(part)
    return Refusal(
        site,
        "INP202",
        f"{text if len(text) <= 40 else text[:37] + '...'} is filled in place: {why}",
        "fill the whole tensor, or assign to the part: p[i] = ...",
    )
