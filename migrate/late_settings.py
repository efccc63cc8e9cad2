"""In: an attribute that is written. Out: whether it is a setting of a layer built before."""

from __future__ import annotations

import ast

from migrate.buffer_gradients import BUFFER, registered, stores_buffer
from migrate.late_children import CHILD, GONE, as_call, decide_child, late_child
from migrate.module_members import family
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

# What nobody but a layer is likely to call so, where its class is not known.
_LAYERS_ONLY = frozenset(
    """
stride padding dilation groups kernel_size output_padding padding_mode ceil_mode count_include_pad
momentum eps track_running_stats negative_slope align_corners
""".split()
)
_NORMS = tuple(f"torch.nn.{kind}" for kind in ("BatchNorm", "GroupNorm", "LayerNorm", "Module"))
_CONVOLUTION = frozenset(f"torch.nn.Conv2d.{name}" for name in ("stride", "padding", "dilation"))


def late_setting(scene: Scene, node: ast.Attribute | ast.Call) -> str:
    """The torch name of what ``bn.momentum = 0.03`` and ``setattr(bn, "momentum", 0.03)`` set,
    or the name for a child that a chain gets or loses late; "" for all else.

    A layer of torch goes by it from then on. A Cell has read it when it was built, and some call
    something else by that name: momentum weighs the old value there.
    """
    if isinstance(node, ast.Attribute):
        held, attribute = node.value, node.attr
        if stores_buffer(scene, node):
            return BUFFER
    elif getattr(node.func, "id", "") == "setattr" and len(node.args) == 3:
        held, attribute = node.args[0], str(getattr(node.args[1], "value", ""))
        if attribute in registered(scene):
            return BUFFER
    else:
        return late_child(scene, node)
    names = {_setting(scene, atom, attribute) for atom in without_none(scene.kind(held))} - {""}
    if names and isinstance(node, ast.Attribute) and _as_built(scene, node):
        return ""
    if len(names) > 1:  # the helper is for a Conv2d alone
        names -= _CONVOLUTION
    return min(names, default="") or late_child(scene, node)


def _setting(scene: Scene, atom: Atom, attribute: str) -> str:
    if atom.kind != "Module" or attribute in _FREE:
        return ""
    if atom.name in ("", "torch.nn.Module"):
        own = attribute not in _LAYERS_ONLY or attribute in scene.inference.program.holders
        return "" if own else f"torch.nn.Module.{attribute}"
    layers: tuple[str, ...] = (atom.name,)
    if "::" in atom.name:
        layers = () if _computes(scene, atom.name) else scene.inference.torch_bases(atom.name)
    for layer in layers:
        signatures = scene.table.signatures(layer) if layer.startswith("torch.nn.") else ()
        if any(param.name == attribute for one in signatures for param in one.params):
            return f"{layer}.{attribute}"
    return ""


def _computes(scene: Scene, key: str) -> bool:
    """Whether a class of the project has a ``forward`` of its own that leaves its base's alone:
    what it writes on itself then means what that says."""
    own = [c.methods["forward"] for c in family(scene, key) if "forward" in c.methods]
    nodes = (n for method in own for n in method.nodes)
    return bool(own) and not any(getattr(n, "attr", "") == "forward" for n in nodes)


def _as_built(scene: Scene, node: ast.Attribute) -> bool:
    """``self.stride = stride`` where ``super().__init__(..., stride)`` gets the same."""
    statement, function = scene.statement(node), scene.function(node)
    name = getattr(getattr(statement, "value", None), "id", None)
    if function is None or name is None:
        return False
    calls = (c for c in function.nodes if isinstance(c, ast.Call))
    builds = [c for c in calls if getattr(c.func, "attr", "") == "__init__"]
    named = ((k.arg, k.value) for c in builds for k in c.keywords)
    given = [*named, *((node.attr, a) for c in builds for a in c.args if name == node.attr)]
    return any(a == node.attr and getattr(value, "id", None) == name for a, value in given)


def decide_late(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """The line would do nothing: it is flagged. A late child has a helper, and so have the
    settings of a Conv2d that change with what it is used for, ceil_mode, and what a norm goes by.
    """
    if name in (CHILD, GONE):
        return decide_child(scene, node, name)
    helper = "helpers.set_convolution" if name in _CONVOLUTION else ""
    helper = "helpers.set_ceil_mode" if name.endswith(".ceil_mode") else helper
    if name.startswith(_NORMS) and name.endswith((".eps", ".momentum")):
        helper = "helpers.set_norm"
    if helper and (made := as_call(scene, node, name, helper)):
        return made
    layer, _, setting = name.removeprefix("torch.nn.").rpartition(".")
    layer = "layer" if layer == "Module" else layer
    return Refusal(
        scene.site(name, node),
        "API114",
        f"a Cell reads {setting} once, when it is built: this changes nothing in MindSpore",
        f"give {setting} to {layer}(...), or put a new {layer} in its place",
    )
