"""In: ``self.name = value`` in a method. Out: whether the value's gradient is wanted and lost.

A buffer that is saved is a Parameter here: it takes the numbers of what is assigned to it, and no
gradient goes back through it. In torch it is the very tensor, and what reads it later in the pass
is differentiated through it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Refusal
from migrate.program import Class
from migrate.receivers.kinds import is_all
from migrate.scene import Scene

BUFFER = "torch.nn.Module.register_buffer"
_QUIET = ("no_grad", "inference_mode", "set_grad_enabled")
_CUTTING = frozenset(
    """
    detach argmax argmin long int bool round floor ceil sign numel size zeros ones full empty
    arange eye linspace tensor zeros_like ones_like full_like empty_like rand randn randint
    rand_like randn_like multinomial bincount nonzero item tolist no_grad len range
    """.split()
)


def loses_gradient(scene: Scene, node: ast.Attribute) -> bool:
    """Whether a saved buffer of the class takes a value with a gradient, and is read behind it."""
    function, statement = scene.function(node), scene.parent(node)
    own = isinstance(node.value, ast.Name) and node.value.id == "self"
    if not own or function is None or not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return False
    if getattr(function.node, "name", "") == "__init__" or node.attr not in _buffers(scene, node):
        return False
    if _is_quiet(scene, node) or not _carries(scene, statement.value, function.node, frozenset()):
        return False
    return _is_read(scene, node, statement, function.node)


def decide_buffer(scene: Scene, node: ast.AST) -> Refusal:
    """The line stays: its numbers are right."""
    return Refusal(
        scene.site(BUFFER, node),
        "INP205",
        f"{ast.unparse(node)} keeps the numbers of what is assigned to it, not its gradient",
        "compute with a local name, and assign its detach() to the buffer",
        keep=True,
    )


def _buffers(scene: Scene, node: ast.AST) -> set[str]:
    """What the class around a node registers under a literal name, and saves."""
    found = set()
    owner = scene.owner(node)
    for call, _ in scene.file.calls.get("register_buffer", ()) if owner else ():
        first = call.args[0] if call.args else None
        saved = len(call.args) < 3 and all(k.arg != "persistent" for k in call.keywords)
        named = isinstance(call.func, ast.Attribute) and isinstance(first, ast.Constant)
        if named and saved and any(owner is one for one in _owners(scene, call)):
            assert isinstance(first, ast.Constant)
            found.add(str(first.value))
    return found


def _owners(scene: Scene, node: ast.AST) -> Iterator[Class]:
    """The class around a node, the one around that, and so on."""
    owner = scene.owner(node)
    while owner is not None:
        yield owner
        owner = scene.owner(owner.node)


def _is_quiet(scene: Scene, node: ast.AST) -> bool:
    """Whether no gradient is recorded around a node."""
    current = scene.parent(node)
    while current is not None and not isinstance(current, ast.ClassDef):
        contexts: list[ast.expr] = getattr(current, "decorator_list", [])
        if isinstance(current, ast.With):
            contexts = [item.context_expr for item in current.items]
        for context in contexts:
            func = context.func if isinstance(context, ast.Call) else context
            if getattr(func, "attr", getattr(func, "id", "")) in _QUIET:
                return True
        current = scene.parent(current)
    return False


def _carries(scene: Scene, node: ast.expr, inside: ast.AST, seen: frozenset[str]) -> bool:
    """Whether a gradient may go through a value: not what is cut off, compared or a number."""
    number = is_all(scene.kind(node), "int", "float", "bool", "str", "Size")
    if number or isinstance(node, (ast.Constant, ast.Compare, ast.BoolOp)):
        return False
    if isinstance(node, ast.Name):
        return node.id not in seen and _name_carries(scene, node.id, inside, seen | {node.id})
    if isinstance(node, ast.Attribute):
        return node.attr not in ("data", "shape", "ndim", "dtype") and (
            node.attr not in _buffers(scene, node)
        )
    if isinstance(node, ast.Call):
        func = node.func
        if getattr(func, "attr", getattr(func, "id", "")) in _CUTTING:
            return False
        given = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(func, ast.Attribute) and not any(
            atom.kind in ("ref", "foreign", "function") for atom in scene.kind(func)
        ):
            given.append(func.value)
        return any(_carries(scene, one, inside, seen) for one in given)
    parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    return any(_carries(scene, one, inside, seen) for one in parts)


def _name_carries(scene: Scene, name: str, inside: ast.AST, seen: frozenset[str]) -> bool:
    """By what the function binds the name to; a parameter may carry one."""
    values = [
        n.value
        for n in ast.walk(inside)
        if isinstance(n, (ast.Assign, ast.AugAssign))
        for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
        if isinstance(t, ast.Name) and t.id == name
    ]
    if name == "self":
        return False
    return not values or any(_carries(scene, one, inside, seen) for one in values)


def _is_read(scene: Scene, node: ast.Attribute, statement: ast.stmt, inside: ast.AST) -> bool:
    """Whether the function reads the buffer behind the statement, or in a loop around it."""
    loop: ast.AST | None = statement
    while loop is not None and loop is not inside and not isinstance(loop, (ast.For, ast.While)):
        loop = scene.parent(loop)
    end = statement.end_lineno or statement.lineno
    return any(
        n.lineno > end or (loop is not inside and loop is not None and n in ast.walk(loop))
        for n in ast.walk(inside)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Load)
        and n.attr == node.attr
        and getattr(n.value, "id", "") == "self"
        and not (statement.lineno <= n.lineno <= end)
    )
