"""In: a name of a Module of the project that every Cell uses too. Out: another one, or a flag."""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import without_none
from migrate.records.outcomes import Edit, Outcome, Refusal, Site, Span
from migrate.rules.classes import name_span
from migrate.sites.module_members import TRAIN
from migrate.sites.scene import Scene

NOTE = "renamed: mindspore.nn.Cell uses this name itself"


def decide(scene: Scene, node: ast.AST, name: str) -> Edit | Refusal:
    """``def compile`` is ``def compile_``; the name of a child is that of its weights."""
    own = name.rpartition(".")[2]
    site = scene.site(name, node)
    if _is_child(scene, node, own):
        if isinstance(getattr(node, "ctx", None), ast.Store):
            why = f"Cell has a member {own} of its own, and a child's name is that of its weights"
            return Refusal(site, "API113", why, "give the child another name", keep=True)
        return Edit(site, Outcome.KEPT, None)
    if name == TRAIN:
        place = Site(name, _span(scene, node, own), site.line, site.column)
        return Edit(place, Outcome.CONVERTED, ("set_train",), name)
    span = _span(scene, node, own)
    place = Site(name, span, site.line, site.column)
    return Edit(place, Outcome.CONVERTED, (free_name(scene, own),), note=NOTE)


def free_name(scene: Scene, name: str) -> str:
    """The name with as many underscores as make it nobody's."""
    classes = scene.inference.program.classes.values()
    name += "_"
    while any(name in c.methods or name in c.stores for c in classes):
        name += "_"
    return name


def _span(scene: Scene, node: ast.AST, name: str) -> Span:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return name_span(scene, node)
    span = scene.source.span(node)
    return Span(span.end - len(name.encode()), span.end)


def _is_child(scene: Scene, node: ast.AST, name: str) -> bool:
    """An attribute that holds a Module or a Tensor: its name is part of the names of weights."""
    if not isinstance(node, ast.Attribute):
        return False
    for atom in without_none(scene.kind(node.value)):
        if atom.kind == "Module" and "::" in atom.name:
            held = scene.inference.member(atom.name, name)
            if any(a.kind in ("Module", "Tensor") for a in held):
                return True
    return False
