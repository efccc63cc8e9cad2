"""In: ``model.parameters()`` inside the call of an optimizer. Out: ``model.trainable_params()``.

Torch's optimizers pass over parameters without a gradient; MindSpore's would move frozen ones.
"""

from __future__ import annotations

import ast

from migrate.outcomes import Edit, Outcome, Site, Span
from migrate.receivers.kinds import is_all
from migrate.scene import Scene

PARAMETERS = "torch.nn.Module.parameters"


def applies(scene: Scene, node: ast.Attribute, name: str) -> bool:
    """Whether the call of ``parameters`` says what an optimizer trains."""
    call = scene.parent(node)
    if name != PARAMETERS or not isinstance(call, ast.Call) or call.args or call.keywords:
        return False
    around: ast.AST | None = scene.parent(call)
    while isinstance(around, (ast.expr, ast.keyword, ast.comprehension)):
        if isinstance(around, ast.Call) and is_all(scene.kind(around), "Optimizer"):
            return True
        around = scene.parent(around)
    return False


def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit:
    """The method of the Cell that leaves frozen parameters out."""
    span, site = scene.source.span(node), scene.site(name, node)
    attribute = Span(span.end - len(node.attr), span.end)
    place = Site(name, attribute, site.line, site.column)
    return Edit(place, Outcome.CONVERTED, ("trainable_params",), PARAMETERS)
