"""Keep an optimizer that a Module holds out of the Module's weights.

MindSpore's optimizers are Cells: as a child of a Cell one puts its name in front of the names of
the weights that it trains, and its moments and rates are weights of the Cell. In torch an attribute
that holds an optimizer is nothing but that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome
from migrate.rules.registry import rewrites
from migrate.sites.scene import Scene
from migrate.syntax.trees import dotted


@rewrites()
def stores(scene: Scene) -> Iterator[Edit]:
    """Yield ``object.__setattr__(self, "optimizer", ...)`` for what a Module is given so."""
    for item in scene.file.of(ast.Assign):
        target = item.targets[0] if len(item.targets) == 1 else None
        if not isinstance(target, ast.Attribute) or not dotted(target.value):
            continue
        held = {a.kind for a in scene.kind(target.value)}
        if held == {"Module"} and "Optimizer" in {a.kind for a in scene.kind(item.value)}:
            owner, value = piece(scene.source, target.value), piece(scene.source, item.value)
            text = ("object.__setattr__(", owner, f', "{target.attr}", ', value, ")")
            yield Edit(scene.site("optimizer of a Module", item), Outcome.CONVERTED, text)
