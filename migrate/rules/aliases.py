"""In: an expression, or a statement that binds a name. Out: what it shares, whether it is read."""

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

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def bound_then_read(scene: Scene, name: str, statement: ast.stmt) -> bool:
    """Whether a variable that a compound statement binds is read after it."""
    return _reads(scene, name, statement)


def _statements(block: object) -> Iterator[list[ast.stmt]]:
    """The statement lists of a block (handlers and cases hold one each)."""
    if not isinstance(block, list) or not block:
        return
    if isinstance(block[0], ast.stmt):
        yield block
    else:
        for part in block:
            yield part.body


def _reads(scene: Scene, name: str, statement: ast.stmt) -> bool:
    """Whether ``name`` may be read after the statement before it is bound anew."""
    loop = _loop(scene, statement)
    if loop is not None and _first_in(scene, loop, name, statement):
        return True
    child: ast.AST = statement
    parent = scene.parent(statement)
    while parent is not None:
        for block in _BLOCKS:
            for items in _statements(getattr(parent, block, None)):
                if child in items:
                    for later in items[items.index(child) + 1 :]:
                        if _loads(later, name):
                            return True
                        if _binds(later, name):
                            return False
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return False
        child, parent = parent, scene.parent(parent)
    return False


def _first_in(scene: Scene, loop: ast.stmt, name: str, statement: ast.stmt) -> bool:
    """Whether the next round of the loop reads the name before binding it."""
    targets = [loop.target] if isinstance(loop, ast.For) else []
    if any(_stores(t, name) for t in targets):
        return False
    for item in getattr(loop, "body", ()):
        if _loads(item, name) and item is not statement:
            return True
        if _binds(item, name):
            return False
    return False


def _loads(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(node)
    )


def _stores(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in ast.walk(node)
    )


def _binds(statement: ast.stmt, name: str) -> bool:
    """A plain assignment that surely binds the name anew."""
    return isinstance(statement, ast.Assign) and any(
        _stores(target, name) for target in statement.targets
    )


def _loop(scene: Scene, node: ast.AST) -> ast.stmt | None:
    """The innermost loop around a node inside its function."""
    current = scene.parent(node)
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.Lambda)):
        if isinstance(current, (ast.For, ast.While)):
            return current
        current = scene.parent(current)
    return None


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
