"""In: what ``forward`` puts on ``self`` for whoever looks at it later. Out: ``keep(self, ...)``.

No code of the program reads it: feature maps and attention weights for the eye. PyNative goes on
keeping it; graph mode, which cannot, computes without it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from migrate.outcomes import Outcome
from migrate.rules import graph_scope, graph_state
from migrate.rules.graph_scope import Rewriting
from migrate.scene import Scene
from migrate.substitution import piece

NOTE = "kept in PyNative only, where no code of the program reads it; graph mode cannot"


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``self.last = y`` is ``keep(self, "last", y)``."""
    for name, function, uses in graph_state.kept(scene):
        statements = [_plain(scene, use) for use in uses]
        if None in statements or graph_state.by_other_names(function):
            continue
        if any(scene.function(use) is not function for use in uses):
            continue
        empty = partial(graph_state.is_empty_start, function=function)
        if not graph_state.known_only(scene, function, name, uses, empty):
            continue
        helper, root = scene.spelling.local("helpers.keep")
        own = function.parameters[0].arg
        for use, value in zip(uses, statements, strict=True):
            assert value is not None
            head = f'{helper}({own}, "{name}", '
            span = scene.source.span(scene.statement(use))
            made = graph_scope.edit(scene, use, span, head, piece(scene.source, value, False), ")")
            made = replace(made, outcome=Outcome.HELPER, needs=frozenset((root,)))
            yield Rewriting(use, (made,), NOTE, f"self.{name}")


def _plain(scene: Scene, use: ast.Attribute) -> ast.expr | None:
    """The value of ``self.name = value``; none that binds something anew, as ``y.add_(1)`` does."""
    statement = scene.parent(use)
    if not isinstance(statement, ast.Assign) or statement.targets != [use]:
        return None
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Attribute) and node.attr.endswith("_"):
            return None
    return statement.value
