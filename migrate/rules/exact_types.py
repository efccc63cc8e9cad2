"""Know where a class of torch is asked for as a type, and ask for both classes that it may be.

``isinstance(x, T)`` asks for MindSpore's own class: the helper that takes torch's arguments derives
from it. ``type(x) is T`` is exact. Where a program passes T on, objects are made of the helper too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Wrap
from migrate.rules.called_from import scene_of
from migrate.rules.calling import class_name
from migrate.rules.registry import rewrites
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene, once
from migrate.syntax.trees import last_name

_CLASS_USES = ("isinstance", "issubclass")
_LISTED = (ast.Tuple, ast.List, ast.Set)
_COMPUTED = (ast.ListComp, ast.SetComp, ast.GeneratorExp)


def is_type_use(scene: Scene, node: ast.expr, named: bool = True) -> bool:
    """``isinstance(x, T)``, ``issubclass``, ``except T``, ``type(x) is T``, ``{T: 1}[type(x)]``."""
    child: ast.AST = node
    parent = scene.parent(node)
    while isinstance(parent, (*_LISTED, ast.BinOp)):
        child, parent = parent, scene.parent(parent)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return parent.func.id in _CLASS_USES and len(parent.args) > 1 and parent.args[1] is child
    if isinstance(parent, ast.Compare):
        sides = [parent.left, *parent.comparators]
        return any(_is_type(scene, side) for side in sides)
    if isinstance(parent, ast.Dict) and child in parent.keys:
        return _looks_up(scene)
    if isinstance(parent, ast.Assign) and child is not node and named:
        return _names_types(scene, parent)
    return isinstance(parent, (ast.ExceptHandler, ast.MatchClass))


def _is_type(scene: Scene, node: ast.expr) -> bool:
    """``type(x)``, ``x.__class__``, several of them, or a variable that holds nothing else."""
    if isinstance(node, ast.Name):
        given = [g for g in scene.facts.values(node) if isinstance(g, (ast.Call, ast.Attribute))]
        return (
            bool(given)
            and len(given) == len(scene.facts.values(node))
            and all(_is_type(scene, g) for g in given)
        )
    if isinstance(node, _COMPUTED):
        return _is_type(scene, node.elt)
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__"
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "type"


def _looks_up(scene: Scene) -> bool:
    """Return whether a file looks something up by the type of an object."""
    gets = (c.args[0] for c, _ in scene.file.calls.get("get", ()) if c.args)
    indices = (one.slice for one in scene.file.of(ast.Subscript))
    tests = (c.left for c in scene.file.of(ast.Compare) if isinstance(c.ops[0], ast.In))
    return any(_is_type(scene, one) for some in (gets, indices, tests) for one in some)


def _names_types(scene: Scene, node: ast.Assign) -> bool:
    """``NORMS = (T, U)`` that the file only tests with: what is made of T otherwise is no helper.

    A helper that takes torch's arguments derives from the native class, which is what others are.
    """
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Name):
        return False
    uses = scene.file.loads.get(target.id, ())
    return bool(uses) and all(is_type_use(scene, use, named=False) for use in uses)


@rewrites()
def both(scene: Scene) -> Iterator[Edit]:
    """Yield ``type(x) in (nn.Dense, Linear)`` for ``type(x) is nn.Linear``, where a program passes
    that class on, so that objects of both may be there."""
    for node in scene.file.of(ast.Compare) if passed_on(scene) else ():
        if len(node.ops) != 1:
            continue
        sides = (node.left, node.comparators[0])
        one, other = sides if _is_type(scene, sides[0]) else sides[::-1]
        helpers = _helpers(scene, other) if _is_type(scene, one) else []
        if not helpers:
            continue
        no = isinstance(node.ops[0], (ast.NotEq, ast.IsNot, ast.NotIn))
        first, second = (piece(scene.source, side) for side in (one, other))
        many = isinstance(one, _COMPUTED)
        parts: list[str | Piece] = [piece(scene.source, node)]
        texts = [scene.spelling.local(helper) for helper, _ in helpers]
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            sign = (" not in " if many else " is not ") if no else (" in " if many else " is ")
            for text, _ in texts:
                asked = (text, sign, first) if many else (first, sign, text)
                parts += [" and " if no else " or ", *asked]
        else:
            named = ", ".join(text for text, _ in texts)
            if direct_name(scene, other) is None:  # what a variable holds may be the helper
                text, roots = _own(scene, helpers)
                texts = [("", root) for root in roots]
                named = f"{text}.get({scene.source.text_of(other)})"
            parts = [first, " not in (" if no else " in (", second, f", {named})"]
        site = scene.site("torch.nn.Module.__class__", node)
        yield Wrap(site, Outcome.HELPER, tuple(parts), needs=frozenset(root for _, root in texts))


@rewrites()
def instances(scene: Scene) -> Iterator[Edit]:
    """Yield ``isinstance(x, asked_for(kind, {Linear: nn.Dense}))`` for ``isinstance(x, kind)``,
    where the variable may hold a class that the program passes on."""
    for call in scene.file.of(ast.Call) if passed_on(scene) else ():
        if getattr(call.func, "id", "") not in _CLASS_USES or len(call.args) != 2:
            continue
        kind = call.args[1]
        if not isinstance(kind, (ast.Name, ast.Attribute)) or direct_name(scene, kind):
            continue
        values = scene.facts.values(kind) if isinstance(kind, ast.Name) else ()
        listed = [v for v in values if isinstance(v, _LISTED)]
        if listed and all(is_type_use(scene, e) for v in listed for e in v.elts):
            continue  # those are MindSpore's own
        if helpers := _helpers(scene, kind):
            (text, root), (own, roots) = (
                scene.spelling.local("helpers.asked_for"),
                _own(scene, helpers),
            )
            site = scene.site("torch.nn.Module.__class__", kind)
            parts = (f"{text}(", piece(scene.source, kind), f", {own})")
            yield Wrap(site, Outcome.HELPER, parts, needs=frozenset((root, *roots)))


def _own(scene: Scene, helpers: list[tuple[str, str]]) -> tuple[str, list[str]]:
    """Return the table of MindSpore's classes by helpers, and what it has to import."""
    spelled = [(*scene.spelling.local(a), *scene.spelling.local(b)) for a, b in helpers]
    inside = ", ".join(f"{helper}: {own}" for helper, _, own, _ in spelled)
    return f"{{{inside}}}", [root for _, one, _, two in spelled for root in (one, two)]


def _helpers(scene: Scene, node: ast.expr) -> list[tuple[str, str]]:
    """Return the helpers of the classes that an expression is, or holds, and that are passed on,
    each with MindSpore's own class."""
    kinds = scene.kind(node)
    atoms = [*kinds, *(a for k in kinds if k.kind in ("tuple", "list") for i in k.items for a in i)]
    names = sorted({a.name for a in atoms if a.kind == "ref"})
    return list(dict.fromkeys(pair for name in names for pair in helpers_of(scene, name)))


def helpers_of(scene: Scene, name: str) -> list[tuple[str, str]]:
    """Return the helpers that objects of a layer are made of where the program passes it on, each
    with MindSpore's own class."""
    native = class_name(scene, name) if name in passed_on(scene) else None
    if native is None:
        return []
    rows = scene.table.rows(name)
    return [(row.ref, native[0]) for row in rows if row.ref and row.ref != native[0]]


@once
def passed_on(scene: Scene) -> frozenset[str]:
    """Return the layers that a program passes on as values: such objects are made of helpers."""
    found = set()
    for file in scene.inference.program.files.values():
        there = scene_of(scene, file)
        for node in (*file.of(ast.Name), *file.of(ast.Attribute)):
            if not last_name(node)[:1].isupper():
                continue
            name = direct_name(there, node) or ""
            parent = there.parent(node)
            called = isinstance(parent, ast.Call) and parent.func is node
            base = isinstance(parent, (ast.ClassDef, ast.Attribute))
            if not name.startswith("torch.nn.") or called or base:
                continue
            if there.table.kind(name) == "class" and not (
                there.in_annotation(node) or is_type_use(there, node)
            ):
                found.add(name)
    return frozenset(found)
