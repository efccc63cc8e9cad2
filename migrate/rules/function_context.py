"""In: forward and backward of a torch.autograd.Function. Out: what they use ``ctx`` for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from migrate.syntax import FunctionNode

_QUIET = ("mark_non_differentiable",)
SAVED = ("saved_tensors", "saved_variables")


def own_nodes(function: FunctionNode | ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from own_nodes(child)


def misused(forward: ast.FunctionDef, backward: ast.FunctionDef) -> str:
    """Why some use of ctx is not understood, or ""."""
    name = forward.args.args[0].arg
    allowed = {id(n) for s in forward.body for n in _understood(s, name)}
    kept = {stored(s, name) for s in forward.body} - {""}
    loads = [n for n in ast.walk(forward) if is_attribute(n, name)]
    allowed |= {id(n.value) for n in loads if isinstance(n.ctx, ast.Load) and n.attr in kept}
    saves = [s for s in forward.body if call_on(s, name) == "save_for_backward"]
    stores = [stored(s, name) for s in forward.body if stored(s, name)]
    if len(saves) > 1 or len(stores) != len(set(stores)):
        return "ctx gets the same thing twice"
    for node in ast.walk(forward):
        if isinstance(node, ast.Name) and node.id == name and id(node) not in allowed:
            return "forward uses ctx in a way that bprop has no counterpart for"
    known = {*stores, *SAVED, "needs_input_grad"}
    name = backward.args.args[0].arg
    uses = [n for n in ast.walk(backward) if is_attribute(n, name)]
    fine = {id(n.value) for n in uses if isinstance(n.ctx, ast.Load) and n.attr in known}
    needs = {id(n.value) for n in ast.walk(backward) if isinstance(n, ast.Subscript)
             and isinstance(n.slice, ast.Constant)}  # fmt: skip
    if any(n.attr == "needs_input_grad" and id(n) not in needs for n in uses):
        return "backward looks at all of ctx.needs_input_grad"
    for node in ast.walk(backward):
        if isinstance(node, ast.Name) and node.id == name and id(node) not in fine:
            return "backward uses ctx in a way that bprop has no counterpart for"
    if not saves and any(
        isinstance(n, ast.Attribute) and n.attr in SAVED for n in ast.walk(backward)
    ):
        return "backward reads tensors that forward does not save"
    return ""


def is_attribute(node: ast.AST, ctx: str) -> TypeGuard[ast.Attribute]:
    """``ctx.something``."""
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == ctx


def is_read(node: ast.Attribute) -> bool:
    """Whether the attribute is looked at, not assigned to."""
    return isinstance(node.ctx, ast.Load)


def ctx_reads(function: ast.FunctionDef) -> frozenset[str]:
    """The attributes of ctx that a method reads."""
    ctx = function.args.args[0].arg
    found = [n for n in ast.walk(function) if is_attribute(n, ctx)]
    return frozenset(n.attr for n in found if isinstance(n.ctx, ast.Load))


def _understood(statement: ast.stmt, ctx: str) -> Iterator[ast.AST]:
    """The uses of ctx in a statement of forward that are understood."""
    if call_on(statement, ctx) in ("save_for_backward", *_QUIET) or stored(statement, ctx):
        first = next(n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == ctx)
        yield first


def call_on(statement: ast.stmt, ctx: str) -> str:
    """The method of ctx that a statement calls, without keywords or stars."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    plain = not call.keywords and not any(isinstance(a, ast.Starred) for a in call.args)
    on_ctx = isinstance(call.func.value, ast.Name) and call.func.value.id == ctx
    return call.func.attr if plain and on_ctx else ""


def stored(statement: ast.stmt, ctx: str) -> str:
    """The attribute of ctx that ``ctx.attribute = value`` binds."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return target.attr if target.value.id == ctx else ""
    return ""


def is_unpacking(statement: ast.stmt, backward: ast.FunctionDef, forward: ast.FunctionDef) -> bool:
    """``x, w = ctx.saved_tensors`` after ``ctx.save_for_backward(x, w)``; ``k = ctx.k`` too."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    mine, theirs = backward.args.args[0].arg, forward.args.args[0].arg
    target, value = statement.targets[0], statement.value
    saved: list[ast.expr] = next(
        (s.value.args for s in forward.body  # type: ignore[attr-defined]
         if call_on(s, theirs) == "save_for_backward"), [],
    )  # fmt: skip
    names = [getattr(a, "id", "") for a in saved]
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        index = value.slice.value
        inside = isinstance(index, int) and -len(names) <= index < len(names)
        names = [names[index]] if inside and isinstance(index, int) else []
        value = value.value
        targets: list[ast.expr] = [target]
    elif isinstance(target, (ast.Tuple, ast.List)):
        targets = target.elts
    else:
        attribute = value.attr if isinstance(value, ast.Attribute) else ""
        named = (s for s in forward.body if attribute and stored(s, theirs) == attribute)
        kept = next((s.value for s in named), None)  # type: ignore[attr-defined]
        names = [getattr(kept, "id", "")]
        saved_all = attribute in SAVED
        targets = [] if saved_all or not attribute else [target]
    on_ctx = isinstance(value, ast.Attribute) and getattr(value.value, "id", "") == mine
    return on_ctx and bool(names[0:]) and [getattr(t, "id", "-") for t in targets] == names


def changed(statement: ast.AST) -> set[str]:
    """The names that a statement binds, and those whose tensors it changes."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found | altered(statement)


def altered(statement: ast.AST) -> set[str]:
    """The names whose tensors it changes in place."""
    found = set()
    for node in ast.walk(statement):
        target: ast.AST | None = None
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            in_place = node.func.attr.endswith("_") and not node.func.attr.startswith("_")
            target = node.func.value if in_place else None
        while isinstance(target, (ast.Attribute, ast.Subscript)):
            target = target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found
