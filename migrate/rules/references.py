"""In: a place where the code spells a torch name. Out: its edit, by how the name is used there."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.mapping.choice import NotChosen
from migrate.mapping.row import POLICY_REFUSE
from migrate.mapping.table import Row, Table
from migrate.mapping.templates import names, parse
from migrate.records.outcomes import Edit, Outcome, Refusal, Site
from migrate.rules import by_text, decorators, filled_parts, inplace, type_names
from migrate.rules.by_text import chosen_by_text, dtype_by_text, namespace, spelled_out
from migrate.rules.callers import fate
from migrate.rules.calling import (
    class_name,
    constant_target,
    decide_call,
    decide_method,
    same_signature,
    template_of,
)
from migrate.rules.exact_types import is_type_use
from migrate.rules.registry import decides
from migrate.rules.written import UNPADDING, told_out, told_outs, transposes
from migrate.sites.module_members import family
from migrate.sites.references import Form, direct_name
from migrate.sites.scene import Scene
from migrate.syntax.trees import dotted, is_none


@decides(Form.NAME)
def decide(scene: Scene, node: ast.Name | ast.Attribute, name: str) -> Edit | Refusal:
    """Convert a torch name by its row: called, as a type, as a base class, or passed on."""
    site = scene.site(name, node)
    parent = scene.parent(node)
    called = parent if isinstance(parent, ast.Call) and parent.func is node else None
    if isinstance(node, ast.Name) and scene.table.library_class(name):
        return Edit(site, Outcome.KEPT, None, name)  # its import names the other package
    gone = decorators.decide(scene, site, called or node, name)
    if gone is not None:
        return gone
    if called is not None and (unbound := _unbound(scene, site, node, name)) is not None:
        return unbound
    if called is not None and (told_out(scene, called) or told_outs(scene, called)):
        return inplace.into(scene, site, name, called)
    if called is not None and (inherited := _inherited(scene, site, called, name)) is not None:
        return inherited
    if isinstance(parent, ast.Call) and parent.func is node:
        found = decide_call(scene, site, name, parent, None)
        if isinstance(found, NotChosen):
            written = inplace.function(scene, site, name, parent) if name.endswith("_") else None
            other = written or _reference_call(scene, site, parent, node, found)
            return filled_parts.placed(scene, name, parent, other)
        if name == UNPADDING and transposes(parent) and parent.args:
            missed = fate(scene, parent).missed
            if missed is not None:
                return inplace.missed(site, parent.args[0], missed)
        if isinstance(found, Refusal) and found.keep:
            return _undecided(scene, site, node, name, found)
        return filled_parts.placed(scene, name, parent, found)
    if _is_hasattr(parent, node):
        assert isinstance(parent, ast.Call)
        return _hasattr(scene, site, name, parent)
    if (answered := by_text.takes_argument(scene, node, name)) is not None:
        return answered
    if scene.in_annotation(node):
        return _annotation(scene, site, name, node)
    if is_type_use(scene, node):
        return _type_use(scene, site, name, node)
    if _is_type_argument(scene, node) and (named := class_name(scene, name)) is not None:
        return _renamed(scene, site, node, *named)
    if isinstance(parent, ast.ClassDef) and node in parent.bases:
        return _base(scene, site, name, node)
    return _value(scene, site, name, node)


def _unbound(scene: Scene, site: Site, node: ast.expr, name: str) -> Edit | Refusal | None:
    """``torch.Tensor.add(x, y)``: no row for a method has its receiver among the arguments."""
    rows = scene.table.rows(name)
    if not any("self" in names(template_of(scene, row)) for row in rows):
        return None
    if (found := _as_method(scene, site, node, name)) is not None:
        return found
    why = "a method is called as a function of its class"
    return Refusal(site, "API104", why, "call it as a method of the object")


def _as_method(scene: Scene, site: Site, node: ast.expr, name: str) -> Edit | None:
    """``torch.Tensor.sum(x, 0)`` is ``x.sum(0)``."""
    call = scene.parent(node)
    if not isinstance(call, ast.Call) or call.func is not node or not call.args:
        return None
    if not is_all(scene.kind(call.args[0]), "Tensor") or inplace.applies(scene, name):
        return None
    return decide_method(scene, site, name, call)


def _inherited(scene: Scene, site: Site, call: ast.Call, name: str) -> Edit | None:
    """``nn.LayerNorm.forward(self, x)`` is that of the Cell which the class derives from."""
    owner, _, last = name.rpartition(".")
    if last != "forward" or call.keywords or not call.args:
        return None
    atoms = scene.kind(call.args[0])
    own = [a for a in atoms if a.kind == "Module" and "::" in a.name]
    if not own or len(own) < len(atoms):
        return None
    if any(owner not in scene.inference.torch_bases(a.name) for a in own):
        return None
    rows = scene.table.rows(owner)
    targets = ((row.ref or same_signature(scene.table, row), row) for row in rows)
    target, row = next((found for found in targets if found[0]), ("", None))
    if not target:
        return None
    edit = _renamed(scene, site, call.func, target, row)
    return replace(edit, outcome=Outcome.HELPER, parts=(*(edit.parts or ()), ".construct"))


def _undecided(scene: Scene, site: Site, node: ast.expr, name: str, why: Refusal) -> Edit | Refusal:
    """Several rows may be meant: one that takes torch's arguments decides when it runs."""
    for row in scene.table.rows(name):
        if row.ref:
            return _renamed(scene, site, node, row.ref, row)
    return replace(why, keep=False)


def _reference_call(
    scene: Scene, site: Site, call: ast.Call, node: ast.expr, why: NotChosen
) -> Edit | Refusal:
    """No row admits the call as it stands: torch's own signature, with the arguments untouched."""
    refused = [k.arg for k in call.keywords if k.arg in POLICY_REFUSE and not is_none(k.value)]
    if why.ref and not (why.flagged or why.impossible or refused):
        return _renamed(scene, site, node, why.ref, why.row)
    return Refusal(site, why.code, why.reason, why.next_step)


def _renamed(
    scene: Scene, site: Site, node: ast.expr | ast.alias, target: str, row: Row | None
) -> Edit:
    """The name alone becomes another one."""
    text, root = scene.spelling.local(target)
    kept = text == scene.source.text_of(node)
    outcome = (
        Outcome.HELPER
        if target.startswith("helpers.")
        else (Outcome.KEPT if kept else Outcome.CONVERTED)
    )
    return Edit(
        site, outcome, (text,), row.key if row else "", frozenset((root,)), row.note if row else ""
    )


def _annotation(scene: Scene, site: Site, name: str, node: ast.expr) -> Edit | Refusal:
    """Annotations decide nothing at run time: what has no counterpart becomes ``object``."""
    found = class_name(scene, name)
    if found is None or not found[0].startswith(("mindspore.", "helpers.")):
        text = found[0] if found else "object"
        parent = scene.parent(node)
        whole = parent if isinstance(parent, ast.Subscript) and parent.value is node else node
        place = Site(name, scene.source.span(whole), site.line, site.column)
        return Edit(place, Outcome.CONVERTED, (text,), note=f"annotation {name} is now {text}")
    return _renamed(scene, site, node, found[0], found[1])


def _is_type_argument(scene: Scene, node: ast.expr) -> bool:
    """Return whether a name is part of a type of ``typing``: ``Union[str, torch.dtype]``."""
    child: ast.AST = node
    while isinstance(parent := scene.parent(child), ast.expr):
        if isinstance(parent, ast.Subscript) and child is parent.slice:
            kind = scene.kind(parent.value)
            if kind and all(a.kind == "foreign" and a.name.startswith(_TYPING) for a in kind):
                return True
        elif not isinstance(parent, (ast.Tuple, ast.List, ast.BinOp)):
            return False
        child = parent
    return False


_TYPING = ("typing.", "typing_extensions.")


def _type_use(scene: Scene, site: Site, name: str, node: ast.expr) -> Edit | Refusal:
    if _asks_instance(scene, node) and (made := type_names.instances(scene, site, name, node)):
        return made
    found = class_name(scene, name)
    if found is not None:
        return _renamed(scene, site, node, found[0], found[1])
    for row in scene.table.rows(name):
        if _makes_tensors(scene, row, name) and _asks_instance(scene, node):
            return _renamed(scene, site, node, "mindspore.Tensor", row)
        if row.flag and _is_never_made(scene, node, name, row):
            return Edit(site, Outcome.CONVERTED, ("()",), row.key, note="nothing makes one here")
        if row.flag:
            return Refusal(site, row.flag, row.reason, row.next_step)
        if constant_target(scene, row):
            return _value(scene, site, name, node)
    return _no_row(scene.table, site, name)


def _makes_tensors(scene: Scene, row: Row, name: str) -> bool:
    """Return whether a class has no objects of its own: every Tensor is one, as of Variable."""
    results = {signature.result for signature in row.signatures}
    return scene.table.kind(name) == "class" and results == {"Tensor"}


def _asks_instance(scene: Scene, node: ast.expr) -> bool:
    """Return whether a class stands in an ``isinstance``; no ``type(x)`` is a Variable."""
    child: ast.AST = node
    while isinstance(parent := scene.parent(child), ast.Tuple):
        child = parent
    return isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "isinstance"


def _is_never_made(scene: Scene, node: ast.expr, name: str, row: Row) -> bool:
    """Return whether ``isinstance(x, C)`` asks for a class of torch's machinery.

    All that would make an object of such a class is flagged: there are none.
    """
    if row.flag != "API104" or scene.table.kind(name) != "class" or "ensor" in name:
        return False
    members = (scene.table.raw[k] for k in scene.table.raw if k.startswith(f"{name}."))
    if any("flag" not in row for row in members):
        return False  # the members of an enumeration are converted
    return _asks_instance(scene, node)


def _base(scene: Scene, site: Site, name: str, node: ast.expr) -> Edit | Refusal:
    """A base class keeps torch's constructor, because ``super().__init__`` calls it."""
    rows = scene.table.rows(name)
    for row in rows:
        if row.flag:
            return Refusal(site, row.flag, row.reason, row.next_step)
        target = row.ref or same_signature(scene.table, row)
        if target:
            edit = _renamed(scene, site, node, target, row)
            return with_reset(scene, node, name, edit)
    if not rows:
        return _no_row(scene.table, site, name)
    return Refusal(
        site,
        "API105",
        "its subclass would call a constructor with other arguments",
        "derive from the MindSpore class by hand",
    )


def _value(scene: Scene, site: Site, name: str, node: ast.expr) -> Edit | Refusal:
    """A name that is passed on: whoever calls it uses torch's arguments."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "dir":
        listed = _listed(scene, site, name, parent)
        if listed is not None:
            return listed
    asked = isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "getattr"
    if asked and isinstance(parent, ast.Call) and parent.args[:1] == [node]:
        return _by_text(scene, site, name, parent)
    return value_of(scene, name, node)


def _by_text(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | Refusal:
    """``getattr(torch, "compile", None)`` is torch.compile, and None where torch has no such."""
    outer, full = spelled_out(scene, name, call)
    around = scene.parent(outer)
    if isinstance(around, ast.Attribute) and direct_name(scene, around):
        return Edit(site, Outcome.CONVERTED, None, note=f"a part of the name {full}.{around.attr}")
    if scene.table.kind(full) or any(not row.flag for row in scene.table.rows(full)):
        return value_of(scene, full, outer)
    if full and len(outer.args) == 3:
        place = Site(name, scene.source.span(outer), site.line, site.column)
        default = piece(scene.source, outer.args[2])
        return Edit(place, Outcome.CONVERTED, (default,), note="answered as torch 2.13 does")
    why = "its attribute is chosen when the program runs"
    chosen = chosen_by_text(scene, site, name, call) or dtype_by_text(scene, site, name, call)
    return chosen or Refusal(site, "API111", why, "name the functions that are meant")


def _listed(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | None:
    """``"silu" in dir(F)`` asks for a version of torch, like ``hasattr``."""
    test = scene.parent(call)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    if not isinstance(test.left, ast.Constant) or not isinstance(test.ops[0], (ast.In, ast.NotIn)):
        return None
    known = bool(scene.table.kind(f"{name}.{test.left.value!s}"))
    answer = known if isinstance(test.ops[0], ast.In) else not known
    place = Site(name, scene.source.span(test), site.line, site.column)
    return Edit(place, Outcome.CONVERTED, (str(answer),), note="answered as torch 2.13 does")


def value_of(scene: Scene, name: str, node: ast.expr | ast.alias) -> Edit | Refusal:
    """The value that a torch name stands for, with torch's own arguments where it is callable."""
    site = scene.site(name, node)
    small = scene.table.kind(name) == "module" and isinstance(node, ast.expr)
    if small and (held := namespace(scene, site, name)):
        return held
    rows = scene.table.rows(name)
    for row in rows:
        if row.flag and len(rows) == 1:
            return Refusal(site, row.flag, row.reason, row.next_step)
        target = row.ref or constant_target(scene, row) or same_signature(scene.table, row)
        if target and dotted(parse(target)):
            return _renamed(scene, site, node, target, row)
        if target:  # a number or a text; a function that always gives it stays one
            made = f"(lambda *_: {target})" if scene.table.kind(name) == "function" else target
            return Edit(site, Outcome.CONVERTED, (made,), row.key, note=row.note)
    if scene.table.kind(name) == "module":
        return Refusal(
            site,
            "API106",
            "a torch module is passed on as a value",
            "name the functions that are meant",
        )
    if not rows:
        return _no_row(scene.table, site, name)
    return Refusal(
        site,
        "API107",
        "it is passed on as a value, and its target takes other arguments",
        "wrap it in a function",
    )


def _no_row(table: Table, site: Site, name: str) -> Refusal:
    if table.kind(name):
        return Refusal(
            site, "API101", "the table has no row for it", "add a row, or write it by hand"
        )
    near = table.suggest(name)
    return Refusal(
        site,
        "API100",
        "torch 2.13 has no such public name",
        f"did you mean {near}?" if near else "check the name",
    )


def _is_hasattr(parent: ast.AST | None, node: ast.expr) -> bool:
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id == "hasattr"
        and len(parent.args) == 2
        and parent.args[0] is node
        and isinstance(parent.args[1], ast.Constant)
    )


def _hasattr(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit:
    """``hasattr(torch, "x")`` asks for a version of torch: answered for the one of the facts."""
    assert isinstance(call.args[1], ast.Constant)
    answer = bool(scene.table.kind(f"{name}.{call.args[1].value!s}"))
    place = site.at(scene.source.span(call))
    return Edit(place, Outcome.CONVERTED, (str(answer),), note="answered as torch 2.13 does")


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
