"""In: stores at positions that were searched for. Out: a test before them that some were found.

``x[places] = value`` with no places changes nothing in torch; MindSpore refuses it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Outcome, Piece
from migrate.receivers.kinds import is_all
from migrate.rules.graph_scope import begins_line
from migrate.scene import Scene
from migrate.selections import is_found, is_selection


def guards(scene: Scene) -> Iterator[Edit]:
    """``if places.size:`` above the statement, which is indented by it."""
    stores: list[ast.Assign | ast.AugAssign] = []
    stores += scene.file.of(ast.Assign)
    stores += scene.file.of(ast.AugAssign)
    for node in stores:
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        target = targets[0]
        if len(targets) != 1 or not isinstance(target, ast.Subscript) or not _alone(scene, node):
            continue
        places = target.slice
        if not isinstance(places, ast.Name):
            continue
        if all(is_all(scene.kind(one), "Tensor") for one in (places, target.value)) and (
            is_found(scene, places) or is_selection(scene, places)
        ):
            yield _guard(scene, target, places.id)


def _alone(scene: Scene, node: ast.stmt) -> bool:
    """Whether no other statement shares its lines."""
    after = scene.source.data[scene.source.span(node).end :].partition(b"\n")[0]
    return begins_line(scene, node) and not after.strip().startswith(b";")


def _guard(scene: Scene, target: ast.Subscript, places: str) -> Edit:
    """It takes the target along, so that a comment on the statement comes before both."""
    source = scene.source
    span = source.span(target)
    indent = source.data[source.line_start(target.lineno) : span.start].decode("utf-8")
    step = "\t" if indent.startswith("\t") else "    "
    text = f"if {places}.size:{source.newline}{indent}{step}"
    site = scene.site("empty index", target)
    return Edit(site, Outcome.CONVERTED, (text, Piece(span)))
