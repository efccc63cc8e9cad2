"""In: ``x.requires_grad`` that is read of a Tensor. Out: its edit; None where x may be a Parameter.

Only Parameters say whether they are trained. What ``forward`` is given, and what it computes, has
no such mark in MindSpore: whoever asks for a gradient names the Parameters that he wants it for.
"""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import is_all
from migrate.records.outcomes import Edit, Outcome, Refusal, Site
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene

NAME = "torch.Tensor.requires_grad"
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")


def decide(scene: Scene, site: Site, node: ast.Attribute) -> Edit | Refusal | None:
    """True where it only chooses whether a checkpoint is made, which changes no number."""
    around = scene.parent(node)
    both = (
        around.values if isinstance(around, ast.BoolOp) and isinstance(around.op, ast.And) else []
    )
    if any(isinstance(v, ast.Constant) and v.value is False for v in both):
        return Edit(site, Outcome.CONVERTED, ("False",), NAME)  # so it is, whatever this says
    if not isinstance(node.ctx, ast.Load) or not _is_activation(scene, node.value):
        return None
    if _chooses_checkpoint(scene, node):
        note = "A checkpoint gives the same numbers and gradients: it is always made."
        return Edit(site, Outcome.CONVERTED, ("True",), NAME, note=note)
    return Refusal(
        site,
        "LOP105",
        "only a Parameter has it: MindSpore differentiates for what it is asked to",
        "ask for what is meant: self.training, or a setting of the Cell",
        keep=True,
    )


def _is_activation(scene: Scene, node: ast.expr) -> bool:
    """Whether a variable is what ``forward`` is given, or what a function computes."""
    function = scene.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    assigned = [n for n in function.nodes if isinstance(n, ast.Assign)]
    given = [a.value for a in assigned for t in a.targets if getattr(t, "id", "") == node.id]
    if not all(_computes(scene, value) for value in given):
        return False
    is_given = any(a.arg == node.id for a in function.parameters[1:])
    return bool(given) or (is_given and function.name == "forward")


def _computes(scene: Scene, node: ast.expr) -> bool:
    """``x + 1``, ``torch.relu(x)``, ``x.view(-1)``: no Parameter, as another call may give one."""
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.BinOp, ast.UnaryOp))
    made = direct_name(scene, node.func) or ""
    if made or not isinstance(node.func, ast.Attribute):
        return made.startswith("torch.") and not made.endswith("Parameter")
    return node.func.attr != "requires_grad_" and is_all(scene.kind(node.func.value), "Tensor")


def _chooses_checkpoint(scene: Scene, node: ast.AST) -> bool:
    """Whether the test of an ``if`` asks, behind which a checkpoint is made."""
    child, parent = node, scene.parent(node)
    while isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
        child, parent = parent, scene.parent(parent)
    if not isinstance(parent, (ast.If, ast.IfExp)) or parent.test is not child:
        return False
    body = parent.body if isinstance(parent.body, list) else [parent.body]
    calls = [n for b in body for n in ast.walk(b) if isinstance(n, ast.Call)]
    return len(body) == 1 and any(direct_name(scene, c.func) in _CHECKPOINTS for c in calls)
