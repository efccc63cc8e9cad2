"""In: ``sqrt(x.shape[-1])``, imported by its name, in compiled code. Out: ``math.sqrt(...)``.

Graph mode takes ``math.sqrt`` for a function of its own. One that is bound to a name of its own is
Python's, which it runs for constants only: a call with a Tensor anywhere in it is refused, even
where just its shape is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting
from migrate.scene import Scene


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """Calls with a Tensor in their arguments; the others compile as they are."""
    for node in graph_scope.nodes(scene, ast.Call):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        names = {a.name for a in scene.kind(node.func) if a.kind == "foreign"}
        if len(names) != 1 or len(scene.kind(node.func)) != 1:
            continue
        module, _, function = names.pop().partition(".")
        if module == "math" and any(_holds_tensor(scene, given) for given in node.args):
            text, root = scene.spelling.local(f"math.{function}")
            made = graph_scope.edit(scene, node, scene.source.span(node.func), text)
            yield Rewriting(node, (replace(made, needs=frozenset((root,))),))


def _holds_tensor(scene: Scene, given: ast.expr) -> bool:
    """Whether a variable in it may be a Tensor."""
    names = [n for n in ast.walk(given) if isinstance(n, ast.Name)]
    kinds = [a.kind for n in names for a in scene.kind(n)]
    return any(kind in ("Tensor", "unknown") for kind in kinds)
