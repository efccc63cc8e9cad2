"""In: a torch name and its rows. Out: the MindSpore name that stands for it as type or value."""

from __future__ import annotations

import ast

from migrate.mapping.table import POLICY_DROP, Row, Table
from migrate.mapping.templates import is_closed, parse
from migrate.rules.calling import template_of
from migrate.sites.scene import Scene
from migrate.syntax.trees import dotted


def class_name(scene: Scene, name: str) -> tuple[str, Row] | None:
    """The MindSpore class (or constant) that a torch name stands for as a type.

    Where rows differ that is MindSpore's own: a helper derives from it, and so is one of them.
    """
    found = []
    for row in scene.table.rows(name):
        template = template_of(scene, row)
        node = parse(template) if template else None
        target = dotted(node.func if isinstance(node, ast.Call) else node) if node else ""
        target = target if target and is_closed(target) else ""
        if target or row.ref:
            found.append((target or row.ref, row))
    return min(found, key=lambda one: one[0].startswith("helpers."), default=None)


def constant_target(scene: Scene, row: Row) -> str:
    """The target of a constant (a dtype, a number): no call and no argument in it."""
    template = template_of(scene, row)
    if not template or isinstance(parse(template), ast.Call) or not is_closed(template):
        return ""
    return template


def same_signature(table: Table, row: Row) -> str:
    """The target when a template only renames and the target takes torch's very arguments."""
    if not row.to or row.only or row.rule:
        return ""
    node = parse(row.to)
    if not isinstance(node, ast.Call):
        return ""
    target = dotted(node.func)
    theirs = table.target_signature(target) if target else None
    if theirs is None or not row.signatures:
        return ""
    mine = [p for p in row.signatures[0].params if p.name not in ("out", "generator")]
    pairs = list(zip(mine, theirs.params, strict=False))
    same = all(a.name == b.name and a.default == b.default for a, b in pairs)
    fits = len(mine) <= len(theirs.params) and same
    extra = all(p.default is not None for p in theirs.params[len(mine) :])
    return target if fits and extra and not (POLICY_DROP & {p.name for p in mine}) else ""
