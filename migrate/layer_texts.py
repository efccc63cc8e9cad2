"""In: a file. Out: the texts in it that name Modules: those a class is held against, and code."""

from __future__ import annotations

import ast

from migrate.receivers import class_texts
from migrate.receivers.kinds import is_all, may_be_any_module
from migrate.scene import Scene
from migrate.template_text import dotted, parse


def find(scene: Scene) -> list[ast.Constant]:
    """Those of comparisons, and the names of layers that are called otherwise in MindSpore."""
    file = scene.file
    compared: list[ast.Constant] = []
    for node in (*file.of(ast.Compare), *file.of(ast.Call)):
        asked = class_texts.of_layers(node, scene.function(node), scene.table)
        compared += [one.text for one in asked]
    subjects = map(class_texts.is_taken, (*file.of(ast.Call), *file.of(ast.Attribute)))
    taken = any(s is not None and _may_be_layer(scene, s) for s in subjects)
    known = {id(text) for text in compared}
    others = _others(scene) if taken else []
    return compared + [t for t in others if id(t) not in known]


def _may_be_layer(scene: Scene, node: ast.expr) -> bool:
    kind = scene.kind(node)
    return may_be_any_module(kind) or is_all(kind, "Module")


def _others(scene: Scene) -> list[ast.Constant]:
    """Texts in tables and patterns that are the name of such a layer and nothing else."""
    own = {owner.name for owner in scene.inference.program.classes.values()}
    names = renamed(scene).keys() - own
    texts = scene.file.of(ast.Constant)
    return [n for n in texts if n.value in names and _is_listed(scene, n)]


def _is_listed(scene: Scene, node: ast.Constant) -> bool:
    """``{"Linear": 1}``, ``["Linear"]``, ``case "Linear":``; ``__all__`` is another matter."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Dict):
        return any(key is node for key in parent.keys)
    if not isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
        return type(parent).__name__ == "MatchValue"
    targets = getattr(scene.parent(parent), "targets", ())
    return not any(getattr(target, "id", "") == "__all__" for target in targets)


def evaluated(scene: Scene) -> list[ast.Call]:
    """``eval(m)`` in a file that imports of torch: a text of a configuration is code like this."""
    spaces = _imported(scene)
    calls = (c for c in scene.file.of(ast.Call) if getattr(c.func, "id", "") == "eval")
    return [c for c in calls if spaces and c.args and _may_name(c.args[0], spaces)]


def _imported(scene: Scene) -> frozenset[str]:
    """The names that the file's imports bind to torch and its modules: ``nn``, ``torch``, ``F``."""
    found: set[str] = set()
    for node in (*scene.file.of(ast.Import), *scene.file.of(ast.ImportFrom)):
        origin = getattr(node, "module", "") or ""
        for alias in getattr(node, "names", ()):
            full = f"{origin}.{alias.name}".lstrip(".")
            if full.partition(".")[0] == "torch" and not getattr(node, "level", 0):
                found.add(alias.asname or alias.name.partition(".")[0])
    return frozenset(found)


def _may_name(text: ast.expr, spaces: frozenset[str]) -> bool:
    """Whether the text is not known here, or names one of them."""
    if not isinstance(text, ast.Constant):
        return True
    node = parse(text.value) if isinstance(text.value, str) else None
    return node is not None and any(getattr(n, "id", "") in spaces for n in ast.walk(node))


def renamed(scene: Scene) -> dict[object, str]:
    """The short names of torch's layers with those of the Cells, where these are others."""
    notes = scene.inference.program.notes
    if "layers renamed" not in notes:
        found: dict[object, str] = {}
        for short in class_texts.layers(scene.table):
            for row in scene.table.rows(f"torch.nn.{short}"):
                made = parse(row.to) if row.to else None
                target = dotted(made.func) if isinstance(made, ast.Call) else None
                if target is not None and not target.endswith(f".{short}"):
                    found[short] = target.rpartition(".")[2]
        notes["layers renamed"] = found
    known: dict[object, str] = notes["layers renamed"]
    return known
