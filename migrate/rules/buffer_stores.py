"""Decide ``m.name = value``, or ``setattr(m, "name", value)``, where that is a saved buffer.

In torch the buffer is the very tensor that is assigned. In MindSpore it is a Parameter that takes
the numbers, for all who hold it: nobody may hold the tensor before, or want the gradient.
"""

from __future__ import annotations

import ast

from migrate.records.outcomes import Edit, Outcome, Refusal
from migrate.rules.buffers import loses_gradient
from migrate.rules.callers import effect
from migrate.sites.buffer_gradients import BUFFER
from migrate.sites.scene import Scene


def decide(scene: Scene, node: ast.Attribute | ast.Call) -> Edit | Refusal:
    """Keep it where nobody can tell."""
    site, function = scene.site(BUFFER, node), scene.function(node)
    text = ast.unparse(node)
    held = effect(scene, function, id(node), "rebound")
    if held:
        return Refusal(
            site,
            "INP203",
            f"{text} is bound anew, and {held} holds the tensor before: a buffer keeps its place",
            f"keep {text}.clone() where the old values are meant",
        )
    lost = effect(scene, function, id(node), "lost")
    if lost:
        return loses_gradient(site, text, f"{lost} reads it behind that")
    return Edit(site, Outcome.KEPT, None)
