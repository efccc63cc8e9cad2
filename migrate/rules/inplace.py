"""In: a method that changes its Tensor in place. Out: a rebinding where no alias sees the difference.

MindSpore's own in-place methods leave the tensor unchanged on CPU, so none is ever written. The
proof is flow-insensitive: names of one function that may share storage form groups, and the
rebinding is refused when another name of the group is read afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.choice import Chosen, NotChosen, choose
from migrate.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.receivers.kinds import is_all
from migrate.rules.calling import edit_of
from migrate.scene import Scene
from migrate.templates import piece

# methods whose result shares storage with the receiver
_VIEWS = frozenset(
    "view reshape transpose permute squeeze unsqueeze expand expand_as flatten narrow select t "
    "chunk split unbind detach contiguous to float half double type_as view_as swapaxes movedim "
    "diagonal unfold unflatten requires_grad_ data T mT real imag".split()
)
_PASSING = ("torch.nn.Identity", "torch.nn.Flatten", "torch.nn.Dropout")


def applies(scene: Scene, name: str) -> bool:
    """An in-place method without a row of its own, whose plain form has one."""
    last = name.rpartition(".")[2]
    if not name.startswith("torch.Tensor.") or not last.endswith("_") or last.endswith("__"):
        return False
    return not scene.table.rows(name) and bool(scene.table.rows(name[:-1]))


def decide(
    scene: Scene, site: Site, name: str, call: ast.Call, receiver: ast.expr
) -> Edit | Refusal:
    """``x.add_(y)`` is ``x = x.add(y)``; in a larger expression the value alone."""
    chosen = choose(scene.table, name[:-1], call.args, call.keywords, scene.kind_names,
                    scene.target)  # fmt: skip
    if isinstance(chosen, NotChosen):
        return Refusal(site, chosen.code, chosen.reason, chosen.next_step)
    if chosen[0].row.rule:
        return Refusal(site, "INP201", "its plain form depends on the context", "write it by hand")
    edit = edit_of(scene, site, call, receiver, chosen[0])
    statement = scene.parent(call)
    if isinstance(statement, ast.Expr):
        return _statement(scene, site, call, receiver, edit)
    return _value(scene, site, call, receiver, edit)


def _plain(edit: Edit, parts: tuple[str | Piece, ...]) -> Edit:
    outcome = Outcome.HELPER if edit.outcome is Outcome.HELPER else Outcome.CONVERTED
    return Edit(edit.site, outcome, parts, edit.row, edit.needs, edit.note)


def _statement(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr, edit: Edit
) -> Edit | Refusal:
    """The value is thrown away: the name is bound anew."""
    assert edit.parts is not None
    if isinstance(receiver, ast.Name):
        seen = alias_read_later(scene, receiver.id, call)
        if seen:
            return _aliased(site, receiver.id, seen)
        return _plain(edit, (f"{receiver.id} = ", *edit.parts))
    if isinstance(receiver, ast.Attribute):
        holder = receiver.value if receiver.attr == "data" else receiver
        text, root = scene.spelling.local("helpers.assign")
        parts = (f"{text}(", piece(scene.source, holder, False), ", ", *edit.parts, ")")
        return Edit(edit.site, Outcome.HELPER, parts, edit.row, edit.needs | {root}, edit.note)
    if isinstance(receiver, ast.Subscript):
        return _plain(edit, (piece(scene.source, receiver, False), " = ", *edit.parts))
    return Refusal(site, "INP202", "it changes a temporary value that other names may share",
                   "assign the result to the name that is meant")  # fmt: skip


def _value(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr, edit: Edit
) -> Edit | Refusal:
    """The value is used: the changed tensor must not be read under its old name any more."""
    assert edit.parts is not None
    root = root_name(receiver)
    if root is None or not _shares(scene, receiver):
        return _plain(edit, edit.parts)
    statement = scene.statement(call)
    rebinds = isinstance(statement, ast.Assign) and any(
        isinstance(t, ast.Name) and t.id == root for t in statement.targets
    )
    seen = alias_read_later(scene, root, call, itself=not rebinds)
    if seen:
        return _aliased(site, root, seen)
    return _plain(edit, edit.parts)


def _aliased(site: Site, name: str, other: str) -> Refusal:
    return Refusal(site, "INP203", f"{name} is changed in place and read later as {other}",
                   f"write {name} = ... where both names mean the new value", keep=False)  # fmt: skip


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


def _shares(scene: Scene, node: ast.expr) -> bool:
    """Whether a value may share storage with the variable at its root."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Subscript):
        return _shares(scene, node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in _VIEWS and _shares(scene, node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if is_all(scene.kind(node.func.value), "Tensor"):
            name = node.func.attr
            return (name in _VIEWS or name.endswith("_")) and _shares(scene, node.func.value)
    return False


def _sources(scene: Scene, node: ast.expr) -> Iterator[str]:
    """The variables whose storage an assigned value may share."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _sources(scene, item)
    elif isinstance(node, ast.IfExp):
        yield from _sources(scene, node.body)
        yield from _sources(scene, node.orelse)
    elif isinstance(node, ast.Call) and node.args and set(
        scene.module_classes(node.func)
    ) & set(_PASSING):  # fmt: skip
        yield from _sources(scene, node.args[0])
    else:
        root = root_name(node)
        if root is not None and _shares(scene, node):
            yield root


def alias_groups(scene: Scene, node: ast.AST) -> dict[str, set[str]]:
    """Variable -> the variables of the function that may share storage with it."""
    pairs: list[tuple[str, str]] = []
    for item in ast.walk(node):
        if isinstance(item, ast.Assign):
            targets = [t for target in item.targets for t in ast.walk(target)
                       if isinstance(t, ast.Name)]  # fmt: skip
            for source in _sources(scene, item.value):
                pairs += [(t.id, source) for t in targets if t.id != source]
    groups: dict[str, set[str]] = {}
    for left, right in pairs:
        merged = groups.get(left, {left}) | groups.get(right, {right})
        for name in merged:
            groups[name] = merged
    return groups


def alias_read_later(
    scene: Scene, name: str, node: ast.expr, itself: bool = False
) -> str:
    """Another name of the same storage that is read after ``node``; "" when there is none."""
    function = scene.function(node)
    body: ast.AST = function.node if function is not None else scene.source.tree
    others = alias_groups(scene, body).get(name, {name}) - (set() if itself else {name})
    end = scene.source.span(scene.statement(node)).end
    loop = _loop(scene, node)
    start = scene.source.span(loop).start if loop is not None else end
    for item in ast.walk(body):
        if isinstance(item, ast.Name) and item.id in others and isinstance(item.ctx, ast.Load):
            place = scene.source.span(item).start
            if place >= end or (loop is not None and place >= start and item.id != name):
                return item.id
    return ""


def _loop(scene: Scene, node: ast.AST) -> ast.stmt | None:
    """The outermost loop around a node inside its function."""
    found = None
    current = scene.parent(node)
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.Lambda)):
        if isinstance(current, (ast.For, ast.While)):
            found = current
        current = scene.parent(current)
    return found


def store(scene: Scene, site: Site, node: ast.Attribute, name: str) -> Edit | Refusal:
    """``p.data = x`` sets the value; ``p.requires_grad = False`` is the same in MindSpore."""
    if name.endswith(".requires_grad"):
        return Edit(site, Outcome.KEPT, None)
    parent = scene.parent(node)
    if name.endswith(".data") and isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        text, root = scene.spelling.local("helpers.assign")
        place = Site(site.name, scene.source.span(parent), site.line, site.column)
        parts = (f"{text}(", piece(scene.source, node.value, False), ", ",
                 piece(scene.source, parent.value, False), ")")  # fmt: skip
        return Edit(place, Outcome.HELPER, parts, "torch.Tensor.data", frozenset((root,)))
    return Refusal(site, "INP204", f"assigning to {node.attr} has no counterpart",
                   "compute gradients with ms.value_and_grad", keep=True)  # fmt: skip


__all__ = ["Chosen", "alias_read_later", "applies", "decide", "store"]
