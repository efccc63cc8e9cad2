"""In: a method that changes its Tensor in place. Out: an assignment, or the reason for none.

MindSpore's own in-place methods leave the tensor unchanged on CPU, so none is ever written. Who
else may hold it is found out by ``alias_walk`` and ``callers``; docs/inplace.md has the proof.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import added, inside, piece
from migrate.mapping.choice import NotChosen, choose
from migrate.mapping.row import POLICY_REFUSE
from migrate.records.outcomes import Edit, Outcome, Part, Piece, Refusal, Site
from migrate.rules import data_attribute, views
from migrate.rules.alias_walk import findings
from migrate.rules.buffers import loses_gradient
from migrate.rules.callers import Fate, can_repeat, fate
from migrate.rules.calling import decide_other, edit_of
from migrate.rules.items import set_anew
from migrate.rules.stopped import is_stopped
from migrate.rules.stopped_calls import Missed
from migrate.rules.torch_sharing import is_written
from migrate.rules.views import is_basic
from migrate.rules.written import (
    Holder,
    Target,
    cuts_off,
    first_argument,
    is_chain,
    target_of,
    told_out,
    told_outs,
)
from migrate.sites.scene import Scene

Parts = tuple["str | Piece", ...]
# torch keeps the dtype of the tensor that it writes into
_TO_BOOL = frozenset(
    """
eq_ ne_ lt_ le_ gt_ ge_ greater_ greater_equal_ less_ less_equal_ not_equal_ logical_and_
logical_or_ logical_xor_ logical_not_
""".split()
)


# whose gradient asks for no number of the tensor that they change
_WITHOUT_INPUT = frozenset(
    "add sub mul div zero fill copy masked_fill sigmoid tanh relu exp neg".split()
)


def changes(name: str) -> bool:
    """Whether a Tensor method changes the values of its receiver."""
    return name.startswith("torch.Tensor.") and is_written(name.rpartition(".")[2])


def applies(scene: Scene, name: str) -> bool:
    """A method in place that the table can write, itself or by its plain form."""
    return changes(name) and bool(scene.table.rows(name) or scene.table.rows(name[:-1]))


def decide(
    scene: Scene, site: Site, name: str, call: ast.Call, receiver: ast.expr
) -> Edit | Refusal:
    """``x.add_(y)`` is ``x = x.add(y)``; in a larger expression the value alone."""
    own = bool(scene.table.rows(name))
    return _decided(scene, site, name if own else name[:-1], call, receiver, own)


def function(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | Refusal | None:
    """``relu_(x)`` is ``x = relu(x)``; None where its plain form is not known either.

    A name with rows of its own (``init.uniform_``) goes by those, also where they refuse a call.
    """
    own = any(not row.flag for row in scene.table.rows(name))
    changed = first_argument(call) if not own else None
    if changed is None or isinstance(changed, (ast.Starred, ast.Subscript)):
        return None
    plain = name[:-1]
    return _decided(scene, site, plain, call, changed, False) if scene.table.rows(plain) else None


def into(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | Refusal:
    """``torch.add(x, y, out=z)`` is ``z = x.add(y)`` in the dtype of ``z``.

    Torch resizes a tensor that has another shape: a variable is bound to what has that shape. Where
    the object has to change, or a part of it, the shapes have to be equal, which the helper asks.
    """
    out = told_out(scene, call)
    if out is None:
        return _into_several(scene, site, name, call)
    target = target_of(scene, out)
    if target.holder is not Holder.VIEW and not can_repeat(scene, out):
        why = "what out= names would be computed twice"
        return Refusal(site, "INP202", why, "give it a name first")
    value = _without_out(scene, site, name, call)
    if isinstance(value, Refusal):
        return value
    found = fate(scene, call)
    if found.missed is not None:
        return missed(site, out, found.missed)
    if is_stopped(scene, scene.file, call) and data_attribute.keeps_gradient(scene, out):
        return data_attribute.straight_through(site, out)
    whole = target.holder is Holder.NAME and not found.assigned
    return _placed(scene, call, out, target, found, _in_kind(scene, out, value, whole), False)


def _into_several(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | Refusal:
    """``torch.max(x, 1, out=(v, i))`` is ``v, i = x.max(1)``, each in the dtype that it has."""
    outs, value = told_outs(scene, call), _without_out(scene, site, name, call)
    if isinstance(value, Refusal):
        return value
    found = fate(scene, call)
    if found.missed is not None:
        return missed(site, outs[0], found.missed)
    lent = found.assigned or any(target_of(scene, o).holder is not Holder.NAME for o in outs)
    if lent or not (isinstance(scene.parent(call), ast.Expr) or found.renewed):
        why = "several tensors are changed in place that others hold"
        return Refusal(site, "INP203", why, "take the results, and assign them")
    text, root = scene.spelling.local("helpers.typed_as")
    pieces = [p for o in outs for p in (", ", piece(scene.source, o))]
    edit = replace(_with(value, (f"{text}(", *(value.parts or ()), *pieces, ")")),
                   outcome=Outcome.HELPER, needs=value.needs | {root})  # fmt: skip
    return bind_anew(scene, call, tuple(pieces[1:]), edit)


def _without_out(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | Refusal:
    """The edit of the call as it stands without ``out=``."""
    given = [k for k in call.keywords if k.arg != "out"]
    plain = ast.copy_location(ast.Call(call.func, call.args, given), call)
    edit = decide_other(scene, site, name, plain, None)
    if isinstance(edit, Edit):
        return edit
    refused = any(k.arg in POLICY_REFUSE for k in given)
    if edit is None or edit.flagged or edit.impossible or refused or not edit.ref:
        why = "its plain form depends on the context" if edit is None else edit.reason
        code = "INP201" if edit is None else edit.code
        return Refusal(site, code, why, "write it by hand" if edit is None else edit.next_step)
    text, root = scene.spelling.local(edit.ref)
    parts = (f"{text}(", *inside(scene.source, plain))
    place = site.at(scene.source.span(call))
    row = edit.row.key if edit.row else ""
    return Edit(place, Outcome.HELPER, (*parts, ")"), row, frozenset((root,)))


def _in_kind(scene: Scene, out: ast.expr, edit: Edit, whole: bool) -> Edit:
    """The value in the dtype of ``out``; in its shape as well, unless ``whole``."""
    held, parts = piece(scene.source, out), edit.parts or ()
    if whole:
        shape = "".join(p if isinstance(p, str) else "_" for p in parts)
        called = isinstance(ast.parse(shape, mode="eval").body, (ast.Call, ast.Attribute, ast.Name))
        plain = parts if called else ("(", *parts, ")")
        return _with(edit, (*plain, ".astype(", held, ".dtype)"))
    text, root = scene.spelling.local("helpers.shaped_as")
    parts = (f"{text}(", *parts, ", ", held, ")")
    return Edit(edit.site, Outcome.HELPER, parts, edit.row, edit.needs | {root}, edit.note)


def _decided(
    scene: Scene, site: Site, row: str, call: ast.Call, receiver: ast.expr, own: bool
) -> Edit | Refusal:
    """By the row for the method itself (``own``), or for its plain form."""
    chosen = choose(scene.table, row, call.args, call.keywords, scene.kind_names, scene.target)
    if isinstance(chosen, NotChosen):
        return Refusal(site, chosen.code, chosen.reason, chosen.next_step)
    if chosen[0].row.rule:
        return Refusal(site, "INP201", "its plain form depends on the context", "write it by hand")
    found, target = fate(scene, call), target_of(scene, receiver)
    if found.missed is not None:
        return missed(site, receiver, found.missed)
    is_method = isinstance(call.func, ast.Attribute) and call.func.value is receiver
    edit = edit_of(scene, site, call, receiver if is_method else None, chosen[0])
    if edit.parts is None:
        edit = _with(edit, (piece(scene.source, call),))
    cut = isinstance(receiver, ast.Call) and cuts_off(scene, receiver)
    quiet = cut or is_stopped(scene, scene.file, call)
    valued = row != "torch.Tensor.detach_"  # which writes no value
    if quiet and valued and data_attribute.keeps_gradient(scene, receiver):
        return data_attribute.straight_through(site, receiver)
    if own and (
        cut or found.lent or not (found.assigned or target.holder in (Holder.PLACE, Holder.OUTER))
    ):
        edit = _pure(scene, call, receiver, edit)
    elif last_of(row) + "_" in _TO_BOOL and not found.assigned:
        cast = (".astype(", piece(scene.source, receiver), ".dtype)")
        edit = _with(edit, ("(", *edit.parts, ")", *cast))  # type: ignore[misc]
    if found.lent and isinstance(receiver, ast.Name) and last_of(row) not in _WITHOUT_INPUT:
        edit = _from_copy(scene, receiver, edit)
    return _placed(scene, call, receiver, target, found, edit, own)


def last_of(row: str) -> str:
    return row.rpartition(".")[2].rstrip("_")


def _from_copy(scene: Scene, receiver: ast.Name, edit: Edit) -> Edit:
    """The gradient needs the numbers that are overwritten: torch keeps a copy as well."""
    span = scene.source.span(receiver)
    parts = tuple(
        part
        for old in edit.parts or ()
        for part in ((old, ".copy()") if isinstance(old, Piece) and old.span == span else (old,))
    )
    return _with(edit, parts)


def _placed(
    scene: Scene,
    call: ast.Call,
    receiver: ast.expr,
    target: Target,
    found: Fate,
    edit: Edit,
    own: bool,
) -> Edit | Refusal:
    """Put the new value where the old one was."""
    statement = isinstance(scene.parent(call), ast.Expr)
    assert edit.parts is not None
    if target.holder is Holder.OUTER and not _is_global(scene, target):
        return missed(edit.site, receiver, Missed("INP206", "a variable of an outer function"))
    if target.holder is Holder.TEMPORARY:
        if not statement or found.unseen:
            return _with(edit, edit.parts)
        return Refusal(
            edit.site,
            "INP202",
            "it changes a temporary value that other names may share",
            "assign the result to the name that is meant",
        )
    if isinstance(receiver, ast.Subscript) and statement and target.holder is not Holder.VIEW:
        return _into_item(scene, receiver, target, found, edit)
    outer = scene.parent(scene.parent(call))  # type: ignore[arg-type]
    if isinstance(outer, ast.Call) and is_chain(scene, call) and is_chain(scene, outer):
        return _with(edit, edit.parts)
    if target.holder is Holder.VIEW:
        site, value = edit.site, edit.parts
        return views.changed(scene, site, target.expr, value, edit.needs, found.assigned)
    if found.assigned:
        whole = own and not is_chain(scene, receiver) and not found.lent
        return edit if whole else _assigned(scene, target.expr, edit, found.lent)
    if statement or found.renewed:
        return bind_anew(scene, call, (piece(scene.source, target.expr),), edit)
    return _with(edit, edit.parts)


def bind_anew(scene: Scene, call: ast.Call, to: Parts, edit: Edit) -> Edit:
    """Return the edit of a call whose value its statement binds to ``to`` as well."""
    statement = scene.parent(call)
    assert isinstance(statement, (ast.Expr, ast.Assign))
    bound = added(scene.source, edit.site, statement, Part.TARGET, *to)
    place = edit.site.at(scene.source.span(call))
    return replace(_with(edit, edit.parts or ()), site=place, also=(bound,))


def _with(edit: Edit, parts: Parts) -> Edit:
    outcome = Outcome.HELPER if edit.outcome is Outcome.HELPER else Outcome.CONVERTED
    return Edit(edit.site, outcome, parts, edit.row, edit.needs, edit.note)


def _assigned(scene: Scene, holder: ast.expr, edit: Edit, lent: bool = False) -> Edit:
    """The tensor itself gets the new value, for everyone who holds it."""
    assert edit.parts is not None
    text, root = scene.spelling.local("helpers.change_given" if lent else "helpers.assign")
    parts = (f"{text}(", piece(scene.source, holder), ", ", *edit.parts, ")")
    return Edit(edit.site, Outcome.HELPER, parts, edit.row, edit.needs | {root}, edit.note)


def _is_global(scene: Scene, target: Target) -> bool:
    """A variable of the module, not of a function around this one."""
    function = scene.file.function_at(target.expr)
    parent = function.parent if function is not None else None
    while parent is not None:
        if target.name in parent.locals:
            return False
        parent = parent.parent
    return True


def is_closed_over(scene: Scene, target: Target) -> bool:
    return target.holder is Holder.OUTER and not _is_global(scene, target)


def _into_item(
    scene: Scene, receiver: ast.Subscript, target: Target, found: Fate, edit: Edit
) -> Edit | Refusal:
    """``x[i].add_(1)`` is ``x[i] = x[i].add(1)``, for an index that is a view in torch."""
    assert edit.parts is not None
    if not can_repeat(scene, receiver):
        return Refusal(edit.site, "INP202", "its index would be computed twice",
                       "give the index a name first")  # fmt: skip
    if target.holder is Holder.ELEMENT:
        if found.assigned:
            whole = "helpers.assign" in edit.needs
            return edit if whole else _assigned(scene, receiver, edit)
    elif not is_basic(scene, receiver.slice):
        return Refusal(
            edit.site,
            "INP202",
            "nothing tells whether the index makes a view or a copy",
            "assign to the slice: x[i] = ...",
        )
    call = scene.parent(scene.parent(receiver))  # type: ignore[arg-type]
    assert isinstance(call, ast.Call)
    if target.holder is Holder.ELEMENT:  # of a list or dict: a number there is no tensor
        return bind_anew(scene, call, (piece(scene.source, receiver),), edit)
    value = _stored(scene, receiver, edit)
    anew = set_anew(scene, edit.site, receiver, "=", value, edit.needs)
    if anew is not None:
        return anew
    return bind_anew(scene, call, (piece(scene.source, receiver),), _with(edit, value))


def _stored(scene: Scene, receiver: ast.Subscript, edit: Edit) -> Parts:
    """What goes into the slice; a number or a tensor that is copied needs no form of its own."""
    call = scene.parent(scene.parent(receiver))  # type: ignore[arg-type]
    assert isinstance(call, ast.Call) and edit.parts is not None
    last = edit.site.name.rpartition(".")[2]
    if last == "zero_":
        return ("0",)
    if last in ("fill_", "copy_") and len(call.args) == 1 and not call.keywords:
        return (piece(scene.source, call.args[0]),)
    return edit.parts


def _pure(scene: Scene, call: ast.Call, receiver: ast.expr, edit: Edit) -> Edit:
    """The row's own form changes the tensor: for a variable the value is made anew."""
    assert edit.parts is not None
    last, source = edit.site.name.rpartition(".")[2], scene.source
    held = piece(source, receiver)
    values = [*call.args, *(k.value for k in call.keywords)]
    if last == "zero_" or (last == "fill_" and is_all(scene.kind(values[0]), "int", "float")):
        text, root = scene.spelling.local(
            "mindspore.ops.zeros_like" if last == "zero_" else "mindspore.ops.full_like"
        )
        more = (", ", piece(source, values[0])) if values else ()
        parts: Parts = (f"{text}(", piece(source, receiver), *more, ")")
        return Edit(edit.site, Outcome.CONVERTED, parts, edit.row, frozenset((root,)))
    if last == "copy_" and call.args and not isinstance(receiver, ast.Attribute):
        given = piece(source, call.args[0])
        parts = (given, ".astype(", held, ".dtype).broadcast_to(", held, ".shape).copy()")
        return Edit(edit.site, Outcome.CONVERTED, parts, edit.row)
    span = source.span(receiver)
    parts = tuple(
        part
        for old in edit.parts
        for part in ((old, ".copy()") if isinstance(old, Piece) and old.span == span else (old,))
    )
    return _with(edit, parts)


def missed(site: Site, receiver: ast.expr, why: Missed) -> Refusal:
    text = ast.unparse(receiver)
    text = text if len(text) <= 40 else text[:37] + "..."
    if why.code == "INP205":
        return loses_gradient(site, text, why.by)
    joint = ":" if why.code == "INP206" else " and"
    return Refusal(
        site,
        why.code,
        f"{text} is changed in place{joint} {why.by}",
        "bind every name that is read to the new value",
    )


def store(scene: Scene, site: Site, node: ast.Attribute, name: str) -> Edit | Refusal:
    """``p.data = x`` sets the value; ``p.requires_grad = False`` is the same in MindSpore."""
    parent = scene.parent(node)
    added = name.endswith(".data") and isinstance(parent, ast.AugAssign)  # augmented.py
    if name.endswith(".requires_grad") or added:
        return Edit(site, Outcome.KEPT, None)
    if name.endswith(".data") and data_attribute.keeps_gradient(scene, node):
        return data_attribute.straight_through(site, node)
    if name.endswith(".data") and isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        held = findings(scene, scene.function(node)).seen.get(id(node))
        if held is not None:
            why = f"{ast.unparse(node)} is bound anew, and {held} holds the memory before"
            return Refusal(site, "INP203", why, "keep a clone() where the old values are meant")
        if later := data_attribute.differentiated_behind(scene, node):
            why = f"{ast.unparse(node)} is bound anew before {later} may be differentiated"
            return Refusal(site, "INP204", why, "differentiate first: torch keeps the old weights")
        text, root = scene.spelling.local("helpers.assign")
        place = site.at(scene.source.span(parent))
        parts = (
            f"{text}(",
            piece(scene.source, node.value),
            ", ",
            piece(scene.source, parent.value),
            ")",
        )
        return Edit(place, Outcome.HELPER, parts, "torch.Tensor.data", frozenset((root,)))
    return Refusal(
        site,
        "INP204",
        f"assigning to {node.attr} has no counterpart",
        "compute gradients with ms.value_and_grad",
        keep=isinstance(parent, ast.Assign) and getattr(parent.value, "value", 0) is None,
    )
