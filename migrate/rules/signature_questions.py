"""In: a torch name whose signature is asked for an argument. Out: the answer for MindSpore's.

``"fused" in inspect.signature(torch.optim.AdamW).parameters``: code that serves many versions of
torch asks so whether it may pass the argument. It may pass what the target makes use of.
"""

from __future__ import annotations

import ast

from migrate.mapping.row import Row
from migrate.mapping.table_lint import argument_uses, torch_arguments
from migrate.records.outcomes import Edit, Outcome, Site
from migrate.sites.scene import Scene


def decide(scene: Scene, node: ast.expr, name: str) -> Edit | None:
    """The edit of the whole comparison; None where no such question is asked."""
    question, argument = _question(scene, node)
    rows = [row for row in scene.table.rows(name) if row.to]
    if question is None or not rows:
        return None
    taken = any(_uses(row, argument) for row in rows)
    answer = taken is isinstance(question.ops[0], ast.In)
    place = Site(name, scene.source.span(question), node.lineno, node.col_offset + 1)
    note = f"whether it takes {argument} is answered as for the target"
    return Edit(place, Outcome.CONVERTED, (str(answer),), rows[0].key, note=note)


def _question(scene: Scene, node: ast.expr) -> tuple[ast.Compare | None, str]:
    """The comparison that asks, and the argument it asks for."""
    call = scene.parent(node)
    if not isinstance(call, ast.Call) or call.args != [node] or call.keywords:
        return None, ""
    found = scene.kind(call.func)
    if not found or any(a.name != "inspect.signature" or a.kind != "foreign" for a in found):
        return None, ""
    arguments = scene.parent(call)
    question = scene.parent(arguments) if isinstance(arguments, ast.Attribute) else None
    if not isinstance(question, ast.Compare) or question.comparators != [arguments]:
        return None, ""
    asks = isinstance(question.ops[0], (ast.In, ast.NotIn))
    named = question.left.value if isinstance(question.left, ast.Constant) else None
    return (question, named) if asks and isinstance(named, str) else (None, "")


def _uses(row: Row, argument: str) -> bool:
    arguments = torch_arguments(row)
    return argument in arguments and argument_uses(row.to, arguments)[argument] > 0
