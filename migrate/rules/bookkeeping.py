"""In: functions of the project that only report uses to torch. Out: code without the calls of them.

When such a function's torch call has no counterpart, nothing it computes is used by anyone, and
graph mode cannot compile what it looks at (``obj.__module__``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.program import Function
from migrate.records.outcomes import Edit, Outcome, Removal
from migrate.rules.registry import rewrites
from migrate.sites.scene import Scene


@rewrites()
def calls(scene: Scene) -> Iterator[Edit]:
    """Remove calls of functions of the program that only keep torch's books."""
    for node in scene.file.of(ast.Expr):
        if isinstance(node.value, ast.Call):
            atoms = scene.kind(node.value.func)
            functions = [scene.inference.function_of(a.name) for a in atoms if a.kind == "function"]
            if functions and all(f is not None and _without_effect(scene, f) for f in functions):
                site = scene.site("bookkeeping", node)
                yield Removal(site, Outcome.CONVERTED, ())


def _without_effect(scene: Scene, function: Function) -> bool:
    body = function.node.body
    return (
        isinstance(body, list)
        and _is_quiet(scene, body)
        and any(_reports(scene, n) for n in ast.walk(function.node))
    )


def _is_quiet(scene: Scene, body: list[ast.stmt]) -> bool:
    """Only local names are bound, nothing is returned, and the only call statements report."""
    for item in body:
        if isinstance(item, ast.If):
            if not _is_quiet(scene, item.body) or not _is_quiet(scene, item.orelse):
                return False
        elif isinstance(item, ast.Assign):
            if not all(isinstance(t, ast.Name) for t in item.targets):
                return False
        elif isinstance(item, ast.Return):
            if item.value is not None:
                return False
        elif isinstance(item, ast.Expr):
            if not isinstance(item.value, ast.Constant) and not _reports(scene, item.value):
                return False
        elif not isinstance(item, ast.Pass):
            return False
    return True


def _reports(scene: Scene, node: ast.AST) -> bool:
    """A call of torch that a row turns into nothing."""
    if not isinstance(node, ast.Call):
        return False
    names = {a.name for a in scene.kind(node.func) if a.kind == "ref"}
    return bool(names) and all(any(r.to == "None" for r in scene.table.rows(n)) for n in names)
