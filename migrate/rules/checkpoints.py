"""In: a call of torch.save or torch.load. Out: the row it takes, or why it is not converted."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Outcome, Refusal, Site
from migrate.sites.scene import Scene

_SUFFIX = ".ckpt"
_NATIVE = ":checkpoint"
STATE = "torch.nn.Module.state_dict"


def chosen_for(
    scene: Scene, site: Site, name: str, call: ast.Call, chosen: list[Chosen]
) -> list[Chosen] | Refusal:
    """MindSpore's own functions where file and value are as they take them; else the helpers.

    They add ``.ckpt`` to every other name of a file, and hold a state dict only.
    """
    if name not in ("torch.save", "torch.load"):
        return chosen
    first = chosen[0]
    value, file = first.bound.values.get("obj"), first.bound.values.get("f")
    if name == "torch.save" and isinstance(value, ast.expr) and _is_model(scene, value):
        return Refusal(
            site,
            "CKP112",
            "a whole model is saved as code",
            "save its state_dict(), and build the model before loading",
        )
    state = _gives_state(scene, value) if name == "torch.save" else _is_loaded(scene, call)
    native = next((r for r in scene.table.rows(name) if r.key == name + _NATIVE), None)
    if native is None or not state or not isinstance(file, ast.expr) or not _is_named(file):
        return [one for one in chosen if one.row is not native][:1] or chosen
    return [replace(first, row=native)]


def _is_model(scene: Scene, value: ast.expr) -> bool:
    return bool(scene.module_classes(value)) and is_all(scene.kind(value), "Module")


def _gives_state(scene: Scene, value: object) -> bool:
    """``model.state_dict()`` of a Module."""
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "state_dict"
        and not value.args
        and not value.keywords
        and _is_model(scene, value.func.value)
    )


def _is_loaded(scene: Scene, call: ast.Call) -> bool:
    """``model.load_state_dict(torch.load(...))``: the file holds a state dict and nothing else."""
    parent = scene.parent(call)
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Attribute)
        and parent.func.attr == "load_state_dict"
        and parent.args[:1] == [call]
        and _is_model(scene, parent.func.value)
    )


def _is_named(file: ast.expr) -> bool:
    """Whether the name of a file surely ends as MindSpore wants it."""
    match file:
        case ast.Constant(value=str(text)):
            return text.endswith(_SUFFIX)
        case ast.JoinedStr(values=[*_, last]):
            return _is_named(last)
        case ast.BinOp(op=ast.Add(), right=last):
            return _is_named(last)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant() as text):
            return _is_named(text)
        case ast.Call(func=ast.Attribute(value=ast.Constant() as text, attr="format")):
            return _is_named(text)
        case ast.Call(func=ast.Attribute(attr="join"), args=[_, *_, last]):
            return _is_named(last)
    return False


def values(scene: Scene, site: Site, node: ast.Attribute) -> Edit | None:
    """``net.state_dict().values()`` is ``state_values(net)``: MindSpore has another order."""
    call = scene.parent(node)
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    taken = scene.parent(call)
    if not isinstance(taken, ast.Attribute) or taken.attr != "values":
        return None
    whole = scene.parent(taken)
    if not isinstance(whole, ast.Call) or whole.func is not taken:
        return None
    text, root = scene.spelling.local("helpers.state_values")
    place = site.at(scene.source.span(whole))
    parts = (f"{text}(", piece(scene.source, node.value), ")")
    return Edit(place, Outcome.HELPER, parts, STATE, frozenset((root,)))
