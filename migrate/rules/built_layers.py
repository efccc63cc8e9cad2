"""In: a layer of torch as a base class. Out: the base that calls the class's reset_parameters."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.records.outcomes import Edit
from migrate.sites.module_members import family
from migrate.sites.scene import Scene

# layers whose constructor ends with self.reset_parameters()
_RESETTING = frozenset(
    """
Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding
EmbeddingBag RNN LSTM GRU RNNCell LSTMCell GRUCell BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm
InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm RMSNorm PReLU
""".split()
)
_RESET = "helpers.ResetWhenBuilt"


def with_reset(scene: Scene, node: ast.expr, name: str, edit: Edit) -> Edit:
    """``class A(nn.Linear)`` with a reset_parameters of its own, or of a class derived from it."""
    owner = scene.file.classes.get(id(scene.parent(node)))
    layer = name.startswith("torch.nn.") and name.rpartition(".")[2] in _RESETTING
    if owner is None or not layer or edit.parts is None or not _is_reset(scene, owner.key):
        return edit
    text, root = scene.spelling.local(_RESET)
    return replace(edit, parts=(f"{text}, ", *edit.parts), needs=edit.needs | {root})


def _is_reset(scene: Scene, key: str) -> bool:
    """Whether a class of the program that is this one, or derives from it, resets itself."""
    return any(
        "reset_parameters" in one.methods
        and any(owner.key == key for owner in family(scene, one.key))
        for one in scene.inference.program.classes.values()
    )
