"""In: a name of a package that is converted along. Out: the same under the package's new name."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrate.records.outcomes import Edit, Outcome, Refusal
from migrate.sites.scene import Scene


def decide_along(scene: Scene, node: ast.AST, name: str) -> Edit:
    """``import torchvision.models as m`` and the name in ``torchvision.models.resnet18``.

    The module in ``from torchvision.models import resnet18`` is renamed with its statement.
    """
    site = scene.site(name, node)
    if not isinstance(node, ast.alias):
        root, _, rest = _renamed(scene, name).partition(".")
        text, needed = scene.spelling.local(root)
        return Edit(site, Outcome.CONVERTED, (f"{text}.{rest}" if rest else text,),
                    needs=frozenset({needed}))  # fmt: skip
    if isinstance(scene.parent(node), ast.ImportFrom):
        return Edit(site, Outcome.CONVERTED, None)
    return Edit(site, Outcome.CONVERTED, (_import(scene, node),))


def advised(scene: Scene, decision: Edit | Refusal) -> Edit | Refusal:
    """What cannot be converted for want of a package's source says how to get at it."""
    absent = scene.inference.program.followed.absent
    if not absent or not isinstance(decision, Refusal) or decision.code != "ENV501":
        return decision
    package = decision.site.name.partition(".")[0]
    if package not in absent or not absent[package].covers(decision.site.name):
        return decision
    step = f"install {package} where torch2ms runs, or give --follow-path DIR: then what is used of"
    return replace(decision, next_step=f"{step} it is converted along; else {decision.next_step}")


def along_name(scene: Scene, name: str) -> str:
    """How an import of this file names a module of a package that is converted along."""
    new = _renamed(scene, name)
    return scene.spelling.along[new.partition(".")[0]] + new


def _renamed(scene: Scene, name: str) -> str:
    root, dot, rest = name.partition(".")
    return scene.inference.program.followed.names[root] + dot + rest


def _import(scene: Scene, alias: ast.alias) -> str:
    """The statement for one name of ``import``; a relative import has to name what it takes."""
    full = along_name(scene, alias.name)
    root, _, rest = alias.name.partition(".")
    bound = alias.asname or root
    lines = []
    if rest and not alias.asname:  # a package that imports itself by its name
        lines.append(_import_as(full, full.rpartition(".")[2] + "_imported"))
        full = along_name(scene, root)
    return "\n".join([*lines, _import_as(full, bound)])


def _import_as(full: str, bound: str) -> str:
    if not full.startswith("."):
        return f"import {full} as {bound}"
    module, _, last = full.rpartition(".")
    dots = full[: len(full) - len(full.lstrip("."))]
    last_text = last if last == bound else f"{last} as {bound}"
    return f"from {module if module.strip('.') else dots} import {last_text}"
