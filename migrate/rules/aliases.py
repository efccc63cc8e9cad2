"""Say which variables an expression may share its storage with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.receivers.kinds import is_all
from migrate.scene import Scene

_VIEWS = frozenset(
    "view reshape transpose permute squeeze unsqueeze expand expand_as flatten narrow select t "
    "chunk split unbind detach contiguous to float half double type_as view_as swapaxes movedim "
    "diagonal unfold unflatten requires_grad_ data T mT real imag".split()
)

_PASSING = frozenset(("torch.nn.Identity", "torch.nn.Flatten", "torch.nn.Dropout"))


def root_name(node: ast.expr) -> str | None:
    """The variable at the root of ``x``, ``x[i]`` or ``x.view(...)[i]``."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None


def shares(scene: Scene, node: ast.expr) -> bool:
    """Whether a value may share storage with the variable at its root."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Subscript):
        return shares(scene, node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in _VIEWS and shares(scene, node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, node.func.value
    views = name in _VIEWS or name.endswith("_")
    return views and is_all(scene.kind(receiver), "Tensor") and shares(scene, receiver)


def sources(scene: Scene, node: ast.expr) -> Iterator[str]:
    """The variables whose storage an assigned value may share."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from sources(scene, item)
    elif isinstance(node, ast.BoolOp):
        for item in node.values:
            yield from sources(scene, item)
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id
    elif isinstance(node, ast.Dict):
        for item in node.values:
            yield from sources(scene, item)
    elif isinstance(node, ast.IfExp):
        yield from sources(scene, node.body)
        yield from sources(scene, node.orelse)
    elif isinstance(node, ast.Call) and node.args and _passes(scene, node):
        yield from sources(scene, node.args[0])
    else:
        root = root_name(node)
        if root is not None and shares(scene, node):
            yield root


def _passes(scene: Scene, node: ast.Call) -> bool:
    """A layer that hands on its very input, or changes it in place."""
    atoms = scene.kind(node.func)
    classes = set(scene.module_classes(node.func))
    return bool(classes & _PASSING) or any("inplace" in a.keys for a in atoms)
