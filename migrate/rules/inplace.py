"""In: a method that changes its Tensor in place. Out: a rebinding where no alias sees it.

MindSpore's own in-place methods leave the tensor unchanged on CPU, so none is ever written. The
proof is in ``aliases``: the rebinding is refused when another name of the same storage is read
before it is bound anew.
"""

from __future__ import annotations

import ast

from migrate.choice import NotChosen, choose
from migrate.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.rules.aliases import read_later, root_name, shares
from migrate.rules.calling import edit_of
from migrate.scene import Scene
from migrate.substitution import piece


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
    chosen = choose(
        scene.table, name[:-1], call.args, call.keywords, scene.kind_names, scene.target
    )
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
    if isinstance(receiver, ast.Name) and _belongs_elsewhere(scene, receiver):
        return _assigned(scene, receiver, edit)
    if isinstance(receiver, ast.Name):
        seen = read_later(scene, receiver.id, call)
        if seen:
            return _aliased(site, receiver.id, seen)
        return _plain(edit, (f"{receiver.id} = ", *edit.parts))
    if isinstance(receiver, ast.Attribute):
        return _assigned(scene, receiver.value if receiver.attr == "data" else receiver, edit)
    if isinstance(receiver, ast.Subscript):
        return _plain(edit, (piece(scene.source, receiver, False), " = ", *edit.parts))
    return Refusal(
        site,
        "INP202",
        "it changes a temporary value that other names may share",
        "assign the result to the name that is meant",
    )


def _assigned(scene: Scene, holder: ast.expr, edit: Edit) -> Edit:
    """The tensor itself gets the new value, for everyone who holds it."""
    assert edit.parts is not None
    text, root = scene.spelling.local("helpers.assign")
    parts = (f"{text}(", piece(scene.source, holder, False), ", ", *edit.parts, ")")
    return Edit(edit.site, Outcome.HELPER, parts, edit.row, edit.needs | {root}, edit.note)


def _belongs_elsewhere(scene: Scene, receiver: ast.Name) -> bool:
    """A variable of the module, or the argument of a function that gives nothing else back."""
    function = scene.function(receiver)
    if function is None:
        return False
    if receiver.id not in function.locals:
        return True
    owner = scene.owner(function.node)
    if owner is not None and scene.is_module_class(owner):
        return False
    returned = any(
        isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function.node)
    )
    return receiver.id in {a.arg for a in function.parameters} and not returned


def through_view(scene: Scene, site: Site, call: ast.Call, receiver: ast.expr) -> Edit | Refusal:
    """``x[i].fill_(v)`` writes through a view, which MindSpore loses: ``x[i] = v`` does not."""
    statement = scene.parent(call)
    last = site.name.rpartition(".")[2]
    plain = isinstance(receiver, ast.Subscript) and isinstance(statement, ast.Expr)
    if plain and last in ("copy_", "fill_") and len(call.args) == 1 and not call.keywords:
        value = piece(scene.source, call.args[0], False)
        place = Site(site.name, scene.source.span(call), site.line, site.column)
        parts = (piece(scene.source, receiver, False), " = ", value)
        return Edit(place, Outcome.CONVERTED, parts, site.name)
    if plain and last == "zero_" and not call.args:
        place = Site(site.name, scene.source.span(call), site.line, site.column)
        return Edit(place, Outcome.CONVERTED, (piece(scene.source, receiver, False), " = 0"))
    return Refusal(site, "INP205", "it writes through a view, and MindSpore loses what is written",
                   "assign to the slice: x[i] = ...")  # fmt: skip


def changes(name: str) -> bool:
    """Whether a Tensor method changes the values of its receiver."""
    last = name.rpartition(".")[2]
    plain = last.endswith("_") and not last.endswith("__") and last != "requires_grad_"
    return plain and name.startswith("torch.Tensor.")


def is_view(receiver: ast.expr) -> bool:
    """An index, or a method call that may give a view."""
    if isinstance(receiver, ast.Attribute) and receiver.attr in ("data", "T", "mT"):
        return is_view(receiver.value) or receiver.attr != "data"
    return isinstance(receiver, (ast.Subscript, ast.Call))


def _value(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr, edit: Edit
) -> Edit | Refusal:
    """The value is used: the changed tensor must not be read under its old name any more."""
    assert edit.parts is not None
    root = root_name(receiver)
    if root is None or not shares(scene, receiver):
        return _plain(edit, edit.parts)
    statement = scene.statement(call)
    rebinds = isinstance(statement, ast.Assign) and any(
        isinstance(t, ast.Name) and t.id == root for t in statement.targets
    )
    seen = read_later(scene, root, call, itself=not rebinds)
    if seen:
        return _aliased(site, root, seen)
    return _plain(edit, edit.parts)


def _aliased(site: Site, name: str, other: str) -> Refusal:
    return Refusal(
        site,
        "INP203",
        f"{name} is changed in place and read later as {other}",
        f"write {name} = ... where both names mean the new value",
        keep=False,
    )


def store(scene: Scene, site: Site, node: ast.Attribute, name: str) -> Edit | Refusal:
    """``p.data = x`` sets the value; ``p.requires_grad = False`` is the same in MindSpore."""
    if name.endswith(".requires_grad"):
        return Edit(site, Outcome.KEPT, None)
    parent = scene.parent(node)
    if name.endswith(".data") and isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        text, root = scene.spelling.local("helpers.assign")
        place = Site(site.name, scene.source.span(parent), site.line, site.column)
        parts = (
            f"{text}(",
            piece(scene.source, node.value, False),
            ", ",
            piece(scene.source, parent.value, False),
            ")",
        )
        return Edit(place, Outcome.HELPER, parts, "torch.Tensor.data", frozenset((root,)))
    return Refusal(
        site,
        "INP204",
        f"assigning to {node.attr} has no counterpart",
        "compute gradients with ms.value_and_grad",
        keep=True,
    )
