"""In: a call of a collective of torch.distributed. Out: why the tensor it writes to may not be one.

MindSpore changes the very tensor that is given. What is computed of another tensor (``x.detach()``,
``x[0]``) has its memory in torch and is a copy there, so that the other would not change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Refusal, Site
from migrate.scene import Scene

_WRITERS = frozenset(f"torch.distributed.{name}" for name in ("all_reduce", "broadcast", "reduce"))
_SHARING = frozenset(
    "data detach expand expand_as flatten narrow permute ravel reshape select squeeze t transpose "
    "unsqueeze unbind view view_as".split()
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


def refusal(scene: Scene, site: Site, call: ast.Call) -> Refusal | None:
    """A Refusal where the tensor is no variable, or one that may share another's memory."""
    if site.name not in _WRITERS:
        return None
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "tensor")]
    target = given[0] if given else None
    if isinstance(target, ast.Name) and not any(map(_shares, _bound(scene, target))):
        return None
    return Refusal(
        site,
        "INP202",
        "the tensor may share memory with another, which would not change",
        "bind a clone() to a name, and give that name",
    )


def _bound(scene: Scene, name: ast.Name) -> Iterator[ast.expr]:
    """What the function around a name binds to it."""
    owner: ast.AST | None = name
    while owner is not None and not isinstance(owner, _FUNCTIONS):
        owner = scene.parent(owner)
    for node in ast.walk(owner) if owner is not None else ():
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                if any(isinstance(one, ast.Name) and one.id == name.id for one in names):
                    yield node.value


def _shares(value: ast.expr) -> bool:
    """Whether a value may be (part of) another tensor: a name, a part, or a view of one."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Attribute) and value.func.attr in _SHARING
    return isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple))
