"""In: an assignment to an attribute of torch itself. Out: nothing, where the setting has no use."""

from __future__ import annotations

import ast

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Refusal
from migrate.rules.calling import removed
from migrate.rules.targets import constant_target
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene


def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit | Refusal:
    """``torch.backends.cudnn.benchmark = True`` goes; a torch function replaced is flagged."""
    site = scene.site(name, node)
    rows = scene.table.rows(name)
    row = next((row for row in rows if row.flag or constant_target(scene, row)), None)
    if row is None:
        why = "the code puts something of its own in the place of what torch has"
        return Refusal(site, "API112", why, "call your own function or class where it is meant")
    if row.flag:
        return Refusal(site, row.flag, row.reason, row.next_step)
    statement = scene.parent(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        why = "the setting is written together with something else"
        return Refusal(site, "API112", why, "write it as an assignment of its own")
    if _acts(scene, statement.value):
        where = scene.site(name, statement)
        return Edit(where, Outcome.CONVERTED, (piece(scene.source, statement.value),))
    return removed(scene, site, statement, row)


def _acts(scene: Scene, value: ast.expr) -> bool:
    """Whether computing the value may do something besides: then it is still computed."""
    calls = [item for item in ast.walk(value) if isinstance(item, ast.Call)]
    return any(direct_name(scene, call.func) is None for call in calls)
