"""In: one name of an import. Out: whether it goes, or stands for a library that needs torch."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.outcomes import Edit, Outcome, Refusal
from migrate.receivers.kinds import without_none
from migrate.rules.references import value_of
from migrate.scene import Scene


def decide_import(scene: Scene, alias: ast.alias, name: str) -> Edit | Refusal:
    """Torch imports are replaced whole; a library that needs torch becomes a raising object."""
    site = scene.site(name, alias)
    if alias.name == "*" and name.startswith("torch"):
        return Refusal(
            site,
            "API108",
            "a star import hides which names are torch's",
            "import the names that are used",
        )
    root = name.partition(".")[0]
    if root in scene.inference.roots:
        return _binding(scene, alias, name) or Edit(site, Outcome.CONVERTED, None)
    return Refusal(site, "ENV501", f"{root} needs torch", scene.table.needs_torch(root))


def _binding(scene: Scene, alias: ast.alias, name: str) -> Edit | Refusal | None:
    """A name that the file also binds otherwise (``except ImportError: def ...``) needs a value."""
    bound = alias.asname or alias.name.partition(".")[0]
    kinds = without_none(scene.inference.module(scene.file.path).variables.get(bound, frozenset()))
    if not kinds or all(a.direct for a in kinds) or not any(a.direct for a in kinds):
        return None
    found = value_of(scene, name, alias)
    if isinstance(found, Refusal) or not found.parts:
        return found
    return replace(found, parts=(f"{bound} = ", *found.parts))
