"""In: ``getattr(nn, text)``. Out: a dictionary of the names that the text can give."""

from __future__ import annotations

import ast
import fnmatch

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Site
from migrate.rules.targets import same_signature
from migrate.sites.scene import Scene
from migrate.syntax.trees import FUNCTIONS

MAX_CHOICES = 24


def chosen_by_text(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | None:
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
            target = next(
                (
                    r.ref or same_signature(scene.table, r)
                    for r in scene.table.rows(full)
                    if not r.flag
                ),
                "",
            )
            found += [(short, target)] if target else []
    if not 0 < len(found) <= MAX_CHOICES:
        return None
    spelled = [(short, *scene.spelling.local(target)) for short, target in found]
    inside = ", ".join(f"'{short}': {local}" for short, local, _ in spelled)
    place = Site(site.name, scene.source.span(call), site.line, site.column)
    parts = (f"{{{inside}}}[", piece(scene.source, text), "]")
    return Edit(place, Outcome.HELPER, parts, name, frozenset(root for *_, root in spelled))


def spelled_out(scene: Scene, name: str, call: ast.Call) -> tuple[ast.Call, str]:
    """Return the outer call of ``getattr(getattr(torch, "compiler", None), "disable", None)``, and
    the name that it spells, "torch.compiler.disable"; "" if that is no plain text."""
    full = name
    while True:
        text = call.args[1] if len(call.args) in (2, 3) and not call.keywords else None
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
            return call, ""
        full = f"{full}.{text.value}"
        outer = scene.parent(call)
        asks = isinstance(outer, ast.Call) and getattr(outer.func, "id", "") == "getattr"
        if not isinstance(outer, ast.Call) or not asks or outer.args[:1] != [call]:
            return call, full
        call = outer


def _origins(scene: Scene, node: ast.expr) -> list[ast.expr]:
    """The values that a function binds a variable to; the node itself where there are none."""
    function = scene.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return [node]
    values = [
        item.value
        for item in ast.walk(function.node)
        if isinstance(item, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == node.id for t in item.targets)
    ]
    return values or [node]


def _patterns(scene: Scene, text: ast.expr) -> tuple[str, ...]:
    """What a text can be: f"Conv{n}d" is Conv*d; a parameter, what the program gives it."""
    if guarded := _guarded(scene, text):
        return guarded
    found: list[str] = []
    for node in _origins(scene, text):
        own = _pattern(scene, node)
        if not own:
            return ()
        found += own
    return tuple(found)


def _guarded(scene: Scene, text: ast.expr) -> tuple[str, ...]:
    """Return the texts that an ``if`` around admits: ``if kind in ("LSTM", "GRU"):``."""
    child: ast.AST = text
    parent, asked = scene.parent(child), ast.dump(text)
    while parent is not None and not isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
        inside = isinstance(parent, ast.If) and any(child is s for s in parent.body)
        inside |= isinstance(parent, ast.IfExp) and child is parent.body
        test = getattr(parent, "test", None) if inside else None
        if isinstance(test, ast.Compare) and ast.dump(test.left) == asked:
            (operator, *more), items = test.ops, test.comparators[0]
            texts = items.elts if isinstance(items, (ast.Tuple, ast.List, ast.Set)) else [items]
            listed = isinstance(operator, ast.In) and items not in texts
            known = [t.value for t in texts if isinstance(t, ast.Constant) and type(t.value) is str]
            if (listed or isinstance(operator, ast.Eq)) and not more and len(known) == len(texts):
                return tuple(known)
        child, parent = parent, scene.parent(parent)
    return ()


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
