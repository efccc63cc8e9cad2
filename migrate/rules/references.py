"""In: a place where the code spells a torch name. Out: its edit, by how the name is used there."""

from __future__ import annotations

import ast
import fnmatch
from dataclasses import replace

from migrate.choice import NotChosen
from migrate.outcomes import Edit, Outcome, Refusal, Site
from migrate.rules.calling import decide_call, template_of
from migrate.scene import Scene
from migrate.row import POLICY_REFUSE
from migrate.table import POLICY_DROP, Row, Table
from migrate.templates import dotted, parse, piece

MAX_CHOICES = 24
_CLASS_USES = ("isinstance", "issubclass")


def decide(scene: Scene, node: ast.Name | ast.Attribute, name: str) -> Edit | Refusal:
    """A torch name: called, used as a type, as a base class, or passed on as a value."""
    site = scene.site(name, node)
    parent = scene.parent(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        found = decide_call(scene, site, name, parent, None)
        if isinstance(found, NotChosen):
            return _reference_call(scene, site, parent, node, found)
        if isinstance(found, Refusal) and found.keep:
            return _undecided(scene, site, node, name, found)
        return found
    if _is_hasattr(parent, node):
        assert isinstance(parent, ast.Call)
        return _hasattr(scene, site, name, parent)
    if scene.in_annotation(node):
        return _annotation(scene, site, name, node)
    if _is_type_use(scene, node):
        return _type_use(scene, site, name, node)
    if isinstance(parent, ast.ClassDef) and node in parent.bases:
        return _base(scene, site, name, node)
    return _value(scene, site, name, node)


def _undecided(
    scene: Scene, site: Site, node: ast.expr, name: str, why: Refusal
) -> Edit | Refusal:
    """Several rows may be meant: one that takes torch's arguments decides when it runs."""
    for row in scene.table.rows(name):
        if row.ref:
            return _renamed(scene, site, node, row.ref, row)
    return replace(why, keep=False)


def _reference_call(
    scene: Scene, site: Site, call: ast.Call, node: ast.expr, why: NotChosen
) -> Edit | Refusal:
    """No row admits the call as it stands: torch's own signature, with the arguments untouched."""
    refused = [k.arg for k in call.keywords if k.arg in POLICY_REFUSE and not _is_none(k.value)]
    if why.ref and not why.flagged and not refused:
        return _renamed(scene, site, node, why.ref, why.row)
    return Refusal(site, why.code, why.reason, why.next_step)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _renamed(
    scene: Scene, site: Site, node: ast.expr | ast.alias, target: str, row: Row | None
) -> Edit:
    """The name alone becomes another one."""
    text, root = scene.spelling.local(target)
    kept = text == scene.source.text_of(node)
    outcome = Outcome.HELPER if target.startswith("helpers.") else (
        Outcome.KEPT if kept else Outcome.CONVERTED)  # fmt: skip
    return Edit(site, outcome, (text,), row.key if row else "", frozenset((root,)),
                row.note if row else "")  # fmt: skip


def class_name(scene: Scene, name: str) -> tuple[str, Row] | None:
    """The MindSpore class (or constant) that a torch name stands for as a type."""
    for row in scene.table.rows(name):
        template = template_of(scene, row)
        if template:
            node = parse(template)
            target = dotted(node.func if isinstance(node, ast.Call) else node)
            if target is not None:
                return target, row
        if row.ref:
            return row.ref, row
    return None


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


def _is_type_use(scene: Scene, node: ast.expr) -> bool:
    """``isinstance(x, T)``, ``issubclass``, ``except T``, ``type(x) is T`` or ``==``."""
    child: ast.AST = node
    parent = scene.parent(node)
    while isinstance(parent, (ast.Tuple, ast.BinOp)):
        child, parent = parent, scene.parent(parent)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return parent.func.id in _CLASS_USES and len(parent.args) > 1 and parent.args[1] is child
    if isinstance(parent, ast.Compare):
        sides = [parent.left, *parent.comparators]
        return any(isinstance(s, ast.Call) and getattr(s.func, "id", "") == "type" for s in sides)
    return isinstance(parent, ast.ExceptHandler)


def _type_use(scene: Scene, site: Site, name: str, node: ast.expr) -> Edit | Refusal:
    found = class_name(scene, name)
    if found is None:
        return _no_row(scene.table, site, name)
    return _renamed(scene, site, node, found[0], found[1])


def _base(scene: Scene, site: Site, name: str, node: ast.expr) -> Edit | Refusal:
    """A base class keeps torch's constructor, because ``super().__init__`` calls it."""
    rows = scene.table.rows(name)
    for row in rows:
        if row.flag:
            return Refusal(site, row.flag, row.reason, row.next_step)
        target = row.ref or _same_signature(scene.table, row)
        if target:
            return _renamed(scene, site, node, target, row)
    if not rows:
        return _no_row(scene.table, site, name)
    return Refusal(site, "API105", "its subclass would call a constructor with other arguments",
                   "derive from the MindSpore class by hand")  # fmt: skip


def _value(scene: Scene, site: Site, name: str, node: ast.expr) -> Edit | Refusal:
    """A name that is passed on: whoever calls it uses torch's arguments."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "dir":
        listed = _listed(scene, site, name, parent)
        if listed is not None:
            return listed
    if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "getattr":
        return _chosen_by_text(scene, site, name, parent) or Refusal(site, "API111", "its attribute is chosen when the program runs",
                       "name the functions that are meant")  # fmt: skip
    return value_of(scene, name, node)


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
    rows = scene.table.rows(name)
    for row in rows:
        if row.flag and len(rows) == 1:
            return Refusal(site, row.flag, row.reason, row.next_step)
        target = row.ref or _constant(scene, row) or _same_signature(scene.table, row)
        if target and dotted(parse(target)) is not None:
            return _renamed(scene, site, node, target, row)
        if target:
            return Edit(site, Outcome.CONVERTED, (target,), row.key, note=row.note)
    if scene.table.kind(name) == "module":
        return Refusal(site, "API106", "a torch module is passed on as a value",
                       "name the functions that are meant")  # fmt: skip
    if not rows:
        return _no_row(scene.table, site, name)
    return Refusal(site, "API107", "it is passed on as a value, and its target takes other arguments",
                   "wrap it in a function")  # fmt: skip


def _chosen_by_text(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | None:
    """``getattr(nn, f"Conv{n}d")``: a dictionary of the names that the text can give.

    Another text raises KeyError there, so nothing is silently missed.
    """
    text = call.args[1] if len(call.args) == 2 else None
    patterns = _patterns(scene, text) if text is not None else ()
    if text is None or not patterns:
        return None
    found: list[tuple[str, str]] = []
    for full in scene.table.names:
        space, _, short = full.rpartition(".")
        if space == name and any(fnmatch.fnmatchcase(short, p) for p in patterns):
            target = next((r.ref or _same_signature(scene.table, r)
                           for r in scene.table.rows(full) if not r.flag), "")  # fmt: skip
            found += [(short, target)] if target else []
    if not 0 < len(found) <= MAX_CHOICES:
        return None
    spelled = [(short, *scene.spelling.local(target)) for short, target in found]
    inside = ", ".join(f"'{short}': {local}" for short, local, _ in spelled)
    place = Site(site.name, scene.source.span(call), site.line, site.column)
    parts = (f"{{{inside}}}[", piece(scene.source, text, False), "]")
    return Edit(place, Outcome.HELPER, parts, name, frozenset(root for *_, root in spelled))


def _origins(scene: Scene, node: ast.expr) -> list[ast.expr]:
    """The values that a function binds a variable to; the node itself where there are none."""
    function = scene.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return [node]
    values = [
        item.value for item in ast.walk(function.node)
        if isinstance(item, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == node.id for t in item.targets)
    ]  # fmt: skip
    return values or [node]


def _patterns(scene: Scene, text: ast.expr) -> tuple[str, ...]:
    """What a text can be: f"Conv{n}d" is Conv*d; a parameter, what the program gives it."""
    found: list[str] = []
    for node in _origins(scene, text):
        own = _pattern(scene, node)
        if not own:
            return ()
        found += own
    return tuple(found)


def _pattern(scene: Scene, node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.JoinedStr):
        parts = [str(v.value) if isinstance(v, ast.Constant) else "*" for v in node.values]
        return ("".join(parts),) if any(p != "*" for p in parts) else ()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        text = node.func.value
        if node.func.attr == "format" and isinstance(text, ast.Constant):
            pattern = str(text.value).replace("{}", "*")
            return (pattern,) if "{" not in pattern and pattern.strip("*") else ()
    return _given_texts(scene, node) if isinstance(node, ast.Name) else ()


def _given_texts(scene: Scene, node: ast.Name) -> tuple[str, ...]:
    """The literal texts that defaults and calls of the program give a parameter of this name."""
    function = scene.function(node)
    if function is None or node.id not in {a.arg for a in _arguments(function.node.args)}:
        return ()
    values: list[ast.expr | None] = []
    for file in scene.inference.program.files.values():
        for other in file.functions.values():
            values += _defaults(other.node.args, node.id)
        for calls in file.calls.values():
            values += [k.value for call, _ in calls for k in call.keywords if k.arg == node.id]
    texts = {v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    return tuple(sorted(t for t in texts if t.isidentifier()))


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _defaults(arguments: ast.arguments, name: str) -> list[ast.expr | None]:
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(plain[::-1], arguments.defaults[::-1], strict=False))
    found: list[ast.expr | None] = [d for a, d in pairs if a.arg == name]
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return found + [d for a, d in keyword if a.arg == name]


def _constant(scene: Scene, row: Row) -> str:
    """The target of a constant (a dtype, a number): no call in it."""
    template = template_of(scene, row)
    if not template or isinstance(parse(template), ast.Call):
        return ""
    return template


def _same_signature(table: Table, row: Row) -> str:
    """The target when a template only renames and the target takes torch's very arguments."""
    if not row.to or row.only or row.rule:
        return ""
    node = parse(row.to)
    if not isinstance(node, ast.Call):
        return ""
    target = dotted(node.func)
    theirs = table.target_signature(target) if target else None
    if theirs is None or not row.signatures or target is None:
        return ""
    mine = [p for p in row.signatures[0].params if p.name not in ("out", "generator")]
    pairs = list(zip(mine, theirs.params, strict=False))
    same = all(a.name == b.name and a.default == b.default for a, b in pairs)
    fits = len(mine) <= len(theirs.params) and same
    extra = all(p.default is not None for p in theirs.params[len(mine):])
    return target if fits and extra and not (POLICY_DROP & {p.name for p in mine}) else ""


def _no_row(table: Table, site: Site, name: str) -> Refusal:
    if table.kind(name):
        return Refusal(site, "API101", "the table has no row for it",
                       "add a row, or write it by hand")  # fmt: skip
    near = table.suggest(name)
    return Refusal(site, "API100", "torch 2.13 has no such public name",
                   f"did you mean {near}?" if near else "check the name")  # fmt: skip


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
    place = Site(site.name, scene.source.span(call), site.line, site.column)
    return Edit(place, Outcome.CONVERTED, (str(answer),), note="answered as torch 2.13 does")
