"""In: an attribute that is written. Out: whether it is a setting of a layer built before."""

from __future__ import annotations

import ast

from migrate.buffer_gradients import BUFFER, decide_buffer, loses_gradient
from migrate.late_children import CHILD, GONE, decide_child, late_child
from migrate.outcomes import Edit, Refusal
from migrate.receivers.kinds import Atom, without_none
from migrate.scene import Scene

# What torch's layers say of themselves and do not go by, what is data, what changes no number.
_FREE = frozenset(
    """
in_channels out_channels in_features out_features num_features num_embeddings embedding_dim
weight bias inplace device dtype training
""".split()
)


def late_setting(scene: Scene, node: ast.Attribute | ast.Call) -> str:
    """The torch name of what ``bn.momentum = 0.03`` and ``setattr(bn, "momentum", 0.03)`` set,
    or the name for a child that a chain gets or loses late; "" for all else.

    A layer of torch goes by it from then on. A Cell has read it when it was built, and some call
    something else by that name: momentum weighs the old value there.
    """
    if isinstance(node, ast.Attribute):
        held, attribute = node.value, node.attr
        if loses_gradient(scene, node):
            return BUFFER
    elif getattr(node.func, "id", "") == "setattr" and len(node.args) == 3:
        held, attribute = node.args[0], str(getattr(node.args[1], "value", ""))
    else:
        return late_child(scene, node)
    names = {_setting(scene, atom, attribute) for atom in without_none(scene.kind(held))} - {""}
    return min(names, default="") or late_child(scene, node)


def _setting(scene: Scene, atom: Atom, attribute: str) -> str:
    layer = atom.kind == "Module" and atom.name.startswith("torch.nn.") and "::" not in atom.name
    if not layer or attribute in _FREE:
        return ""
    signatures = scene.table.signatures(atom.name)
    known = any(param.name == attribute for one in signatures for param in one.params)
    return f"{atom.name}.{attribute}" if known else ""


def decide_late(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """The line stays: it harms nothing, but does nothing either. A late child has a helper."""
    if name == BUFFER:
        return decide_buffer(scene, node)
    if name in (CHILD, GONE):
        return decide_child(scene, node, name)
    layer, _, setting = name.removeprefix("torch.nn.").rpartition(".")
    return Refusal(
        scene.site(name, node),
        "API114",
        f"a Cell reads {setting} once, when it is built: this changes nothing in MindSpore",
        f"give {setting} to {layer}(...), or put a new {layer} in its place",
        keep=True,
    )
