"""In: ``result.values`` of a named tuple that torch returns. Out: ``result[0]``."""

from __future__ import annotations

import ast

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome
from migrate.sites.scene import Scene


def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit:
    """MindSpore returns plain tuples; the field becomes its place."""
    index = name.removeprefix("field ")
    site = scene.site(f"torch.return_types.{node.attr}", node)
    return Edit(site, Outcome.CONVERTED, (piece(scene.source, node.value), f"[{index}]"))
