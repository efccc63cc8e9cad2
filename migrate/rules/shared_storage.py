"""In: ``x += y``, or a layer with ``inplace=True``. Out: code that rebinds what changes.

MindSpore never changes the tensor itself, so every name that torch would have changed must be bound
to the new value, or the place is flagged.
"""

from __future__ import annotations

import ast

from migrate.outcomes import Edit, Outcome, Refusal, Site, Span
from migrate.rules.aliases import read_later
from migrate.scene import Scene


def decide(scene: Scene, node: ast.Call | ast.AugAssign, name: str) -> Edit | Refusal:
    """Kept where no other name sees the change; the variable is bound anew where it is read."""
    site = scene.site(name, node)
    if isinstance(node, ast.AugAssign):
        assert isinstance(node.target, ast.Name)
        seen = read_later(scene, node.target.id, node.value)
        return _refused(site, node.target.id, seen) if seen else Edit(site, Outcome.KEPT, None)
    variable = node.args[0]
    assert isinstance(variable, ast.Name)
    statement = scene.parent(node)
    bound = _targets(statement)
    others = read_later(scene, variable.id, node)
    if others and others not in bound:
        return _refused(site, variable.id, others)
    if variable.id in bound or not _read_later(scene, variable.id, node):
        return Edit(site, Outcome.KEPT, None)
    if isinstance(statement, (ast.Assign, ast.Expr)) and statement.value is node:
        start = scene.source.span(node).start
        place = Site(site.name, Span(start, start), site.line, site.column)
        return Edit(place, Outcome.CONVERTED, (f"{variable.id} = ",))
    return _refused(site, variable.id, variable.id)


def _targets(statement: ast.AST | None) -> set[str]:
    if not isinstance(statement, ast.Assign):
        return set()
    return {t.id for t in statement.targets if isinstance(t, ast.Name)}


def _read_later(scene: Scene, name: str, node: ast.expr) -> bool:
    return read_later(scene, name, node, itself=True) == name


def _refused(site: Site, name: str, other: str) -> Refusal:
    return Refusal(
        site,
        "INP203",
        f"{name} is changed in place and read later as {other}",
        "bind both names to the new value",
        keep=True,
    )
