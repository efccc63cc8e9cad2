"""Refuse collectives of torch.distributed that write to what may be a part of another tensor.

MindSpore changes the very tensor that is given. What is computed of another tensor (``x.detach()``,
``x[0]``) has its memory in torch and is a copy there, so that the other would not change.
"""

from __future__ import annotations

import ast

from migrate.records.outcomes import Refusal, Site
from migrate.sites.scene import Scene

_WRITERS = frozenset(f"torch.distributed.{name}" for name in ("all_reduce", "broadcast", "reduce"))
_SHARING = frozenset(
    "data detach expand expand_as flatten narrow permute ravel reshape select squeeze t transpose "
    "unsqueeze unbind view view_as".split()
)


def refusal(scene: Scene, site: Site, call: ast.Call) -> Refusal | None:
    """A Refusal where the tensor is no variable, or one that may share another's memory."""
    if site.name not in _WRITERS:
        return None
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "tensor")]
    target = given[0] if given else None
    if isinstance(target, ast.Name) and not _is_part(scene, target):
        values = scene.facts.values(target, parts=True)
        if not any(_shares(v) for v in values if v is not None):  # a parameter is the caller's own
            return None
    return Refusal(
        site,
        "INP202",
        "the tensor may share memory with another, which would not change",
        "bind a clone() to a name, and give that name",
    )


def _is_part(scene: Scene, name: ast.Name) -> bool:
    """Return whether a loop over a Tensor may bind a name, to a part of it."""
    loops = [scene.parent(b.place) for b in scene.facts.reach(name).bindings]
    return any(
        isinstance(n, ast.For | ast.comprehension)
        and any(a.kind == "Tensor" for a in scene.kind(n.iter))
        for n in loops
    )


def _shares(value: ast.expr) -> bool:
    """Whether a value may be (part of) another tensor: a name, a part, or a view of one."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Attribute) and value.func.attr in _SHARING
    return isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple))
