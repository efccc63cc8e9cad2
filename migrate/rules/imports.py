"""In: one name of an import statement. Out: whether it goes, or stands for a library that needs torch."""

from __future__ import annotations

import ast

from migrate.outcomes import Edit, Outcome, Refusal
from migrate.scene import Scene


def decide_import(scene: Scene, alias: ast.alias, name: str) -> Edit | Refusal:
    """Torch imports are replaced as a whole; a library that needs torch becomes a raising object."""
    site = scene.site(name, alias)
    if alias.name == "*" and name.startswith("torch"):
        return Refusal(site, "API108", "a star import hides which names are torch's",
                       "import the names that are used")  # fmt: skip
    root = name.partition(".")[0]
    if root in scene.inference.roots:
        return Edit(site, Outcome.CONVERTED, None)
    return Refusal(site, "ENV501", f"{root} needs torch", scene.table.needs_torch(root))
