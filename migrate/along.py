"""In: an import or a name of a file. Out: whether it means a package that is converted along."""

from __future__ import annotations

import ast

from migrate.names import root_of
from migrate.receivers.followed import followed_kind
from migrate.receivers.kinds import without_none
from migrate.scene import Scene


def follows(scene: Scene, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    """Whether an import takes something from a package that is converted along.

    ``import a.b`` binds a, of which more than b may be used: its uses are looked at.
    """
    followed = scene.inference.program.followed
    name = alias.name if isinstance(node, ast.Import) else node.module or ""
    root = root_of(name)
    if root not in followed.names:
        return False
    if followed.package_of(scene.file.path) == root:
        whole = not followed.policies[root].modules
        return name in followed.modules and (whole or followed.policies[root].converts(name))
    if isinstance(node, ast.Import):
        return bool(alias.asname) and followed_kind(name, scene.inference) is not None
    if alias.name == "*":
        return name in followed.modules and name not in followed.mixed
    return followed_kind(f"{name}.{alias.name}", scene.inference) is not None


def followed_name(scene: Scene, node: ast.Name | ast.Attribute) -> str:
    """The package in ``timm.create_model``, where that is converted along; "" for all else."""
    parent = scene.parent(node) if scene.inference.program.followed.names else None
    if not isinstance(parent, ast.Attribute):
        return ""
    atoms = without_none(scene.kind(node))
    spelt = all(a.direct if a.kind == "ref" else a.kind == "foreign" for a in atoms)
    name = next(iter(atoms)).name if len(atoms) == 1 and spelt else ""
    full = f"{name}.{parent.attr}"
    return name if name and followed_kind(full, scene.inference) is not None else ""
