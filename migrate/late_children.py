"""In: an attribute that is written or deleted. Out: whether it is a child of a chain of Cells."""

from __future__ import annotations

import ast

from migrate.outcomes import Edit, Outcome, Piece, Refusal
from migrate.receivers.kinds import Kind, without_none
from migrate.scene import Scene
from migrate.substitution import piece

CHILD = "torch.nn.Sequential.__setattr__"
GONE = "torch.nn.Sequential.__delattr__"
_HELPERS = {CHILD: "helpers.set_child", GONE: "helpers.delete_child"}
_CALLS = {("setattr", 3): CHILD, ("delattr", 2): GONE}
_SEQUENTIAL = "torch.nn.Sequential"


def late_child(scene: Scene, node: ast.Attribute | ast.Call) -> str:
    """CHILD for ``model.features.conv0 = nn.Conv2d(...)`` and ``setattr(model, name, layer)``,
    GONE for ``del model.features.pool``, where the owner may be a SequentialCell.

    That one calls the list of Cells it was built with: what is put under a name later on is
    never called, without a word. Who derives from Sequential has a base that looks after this,
    so ``self`` itself is none.
    """
    if isinstance(node, ast.Attribute):
        owner, name = node.value, GONE if isinstance(node.ctx, ast.Del) else CHILD
        value = _assigned(scene, node) if name == CHILD else None
    else:
        name = _CALLS.get((getattr(node.func, "id", ""), len(node.args)), "")
        if not name or node.keywords:
            return ""
        owner, value = node.args[0], node.args[2] if name == CHILD else None
    if isinstance(owner, ast.Name) and owner.id == "self":
        return ""
    return name if _concerns(scene, owner, value, name, node) else ""


def _concerns(
    scene: Scene, owner: ast.expr, value: ast.expr | None, name: str, node: ast.AST
) -> bool:
    """Whether the owner may be a chain and the value a Cell; one of both has to be seen."""
    chain, surely = _chain(scene.kind(owner))
    if name == GONE:
        return surely
    given = frozenset() if value is None else without_none(scene.kind(value))
    if any(atom.kind == "Module" for atom in given):
        return chain
    made = isinstance(node, ast.Call) or isinstance(value, ast.Call)
    return surely and made and any(atom.kind == "unknown" for atom in given)


def _chain(kind: Kind) -> tuple[bool, bool]:
    """Whether it may be a Sequential, and whether it is seen to be one, or some Module."""
    atoms = without_none(kind)
    seen = any(a.kind == "Module" and a.name in ("", "torch.nn.Module", _SEQUENTIAL) for a in atoms)
    return seen or not atoms or any(a.kind == "unknown" for a in atoms), seen


def _assigned(scene: Scene, node: ast.Attribute) -> ast.expr | None:
    """What the name gets; its own part of ``a.x, a.y = one, other``."""
    statement = scene.statement(node)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    targets, value = scene.parent(node), statement.value
    if isinstance(targets, ast.Tuple) and isinstance(value, ast.Tuple):
        return dict(zip(targets.elts, value.elts, strict=False)).get(node)
    return value


def decide_child(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """The helper's call; a statement that does more than this one thing is flagged."""
    return as_call(scene, node, name, _HELPERS[name]) or Refusal(
        scene.site(name, node),
        "API114",
        "a SequentialCell calls the Cells it was built with: this one is not among them",
        "give this name a statement of its own",
    )


def as_call(scene: Scene, node: ast.AST, name: str, helper: str) -> Edit | None:
    """``owner.name = value`` and ``setattr(owner, "name", value)`` as a call of a helper; None for
    a statement that does more."""
    local, root = scene.spelling.local(helper)
    needs = frozenset({root})
    if isinstance(node, ast.Call):
        return Edit(scene.site(name, node.func), Outcome.HELPER, (local,), "", needs)
    assert isinstance(node, ast.Attribute)
    statement = scene.statement(node)
    alone = [node] == getattr(statement, "targets", None)
    if not alone or not isinstance(statement, (ast.Assign, ast.Delete)):
        return None
    site = scene.site(name, statement)
    held = piece(scene.source, node.value, False)
    head: tuple[str | Piece, ...] = (f"{local}(", held, f', "{node.attr}"')
    if isinstance(statement, ast.Delete):
        return Edit(site, Outcome.HELPER, (*head, ")"), "", needs)
    value = piece(scene.source, statement.value, False)
    return Edit(site, Outcome.HELPER, (*head, ", ", value, ")"), "", needs)
