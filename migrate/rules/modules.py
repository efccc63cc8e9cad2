"""Convert attributes of a Module (forward, parameters, settings) and ``for m in net.modules()``."""

from __future__ import annotations

import ast

from migrate.codegen.substitution import Renderer, piece
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site, Span
from migrate.rules import laid_out
from migrate.sites.late_writes import as_call
from migrate.sites.module_members import ENTRY, RENAMED
from migrate.sites.scene import Scene
from migrate.sites.unknown_receivers import FORWARD, SOME_FORWARD


def applies(scene: Scene, node: ast.Attribute, name: str) -> bool:
    """Whether this file decides: forward, and what a class row has in ``weights``, ``attrs``."""
    owner, _, last = name.rpartition(".")
    if name in (FORWARD, SOME_FORWARD, ENTRY) or (owner == "torch.nn.Module" and last in RENAMED):
        return True
    rows = scene.table.rows(owner)
    return any(last in row.weights or last in row.attrs or last in row.layout for row in rows)


def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit | Refusal:
    """``m.forward`` is ``m.construct``; ``bn.weight`` is ``bn.gamma``."""
    site = scene.site(name, node)
    owner, _, last = name.rpartition(".")
    if name == SOME_FORWARD:
        return _by_helper(scene, node, name) or Refusal(
            site, "API109", "nothing tells whether it is a Module", "test with isinstance"
        )
    if last == "forward":
        return _renamed(scene, node, name, "construct")
    if name == ENTRY:  # a ModuleDict is a dict to graph mode, which has no attributes
        if not isinstance(node.ctx, ast.Load):
            return Edit(site, Outcome.KEPT, None)
        parts = (piece(scene.source, node.value), f'["{node.attr}"]')
        return Edit(site, Outcome.CONVERTED, parts)
    classes = scene.module_classes(node.value)
    if owner == "torch.nn.Module":
        if made := _by_helper(scene, node, name):
            return made
        why = (
            f"nothing tells which Module it is, and some Cells name {last} "
            "otherwise (gamma, beta, embedding_table)"
        )
        reads = isinstance(node.ctx, ast.Load)  # a Cell without it fails by itself
        return Refusal(site, "API109", why, "test with isinstance", keep=reads)
    known = [c for c in classes if c not in ("", "torch.nn.Module")]
    shapes = laid_out.layouts(scene, tuple(known) or (owner,), last)
    if any(shapes) and scene.target == "portable":
        return laid_out.decide(scene, node, name, shapes)
    targets = {_target(scene, c, last) for c in known or (owner,)}
    if len(targets) != 1:
        if last in RENAMED and (made := _by_helper(scene, node, name)):
            return made
        return Refusal(
            site,
            "API109",
            f"{last} has different names in the Cells it may belong to",
            "tell the classes apart",
            keep=isinstance(node.ctx, ast.Load),
        )
    target = targets.pop()
    if not target and last == "num_batches_tracked" and isinstance(node.ctx, ast.Load):
        target = "helpers.batches_tracked(self)"
    if not target:
        return Refusal(site, "API110", "the Cell has no such attribute", "keep it yourself")
    if target.isidentifier():
        return _renamed(scene, node, name, target)
    renderer = Renderer(scene.source, scene.spelling, scene.table, None, node.value)
    rendering = renderer.render(target)
    helper = any(n.startswith("helpers.") for n in rendering.needs)
    outcome = Outcome.HELPER if helper else Outcome.CONVERTED
    return Edit(site, outcome, rendering.parts, owner, rendering.needs)


def _by_helper(scene: Scene, node: ast.Attribute, name: str) -> Edit | None:
    """``m.weight`` of one of several layers: a helper looks what the Cell calls it; None for a
    statement that does more than giving it one value."""
    if not isinstance(node.ctx, ast.Load):
        return as_call(scene, node, name, "helpers.give_part")
    if node.attr == "weight" and laid_out.use(scene, node) is laid_out.Use.READ:
        return laid_out.by_helper(scene, node, name)
    text, root = scene.spelling.local("helpers.layer_part")
    parts = (f"{text}(", piece(scene.source, node.value), f', "{node.attr}")')
    return Edit(scene.site(name, node), Outcome.HELPER, parts, "", frozenset((root,)))


def _target(scene: Scene, owner: str, attribute: str) -> str:
    for row in scene.table.rows(owner):
        if attribute in row.weights:
            return row.weights[attribute]
        if attribute in row.attrs:
            return row.attrs[attribute]
    return attribute


def _renamed(scene: Scene, node: ast.Attribute, name: str, target: str) -> Edit:
    """Only the attribute's name changes; the text around it stays."""
    site = scene.site(name, node)
    if node.attr == target:
        return Edit(site, Outcome.KEPT, None, name)
    receiver = scene.source.span(node.value)
    whole = scene.source.span(node)
    gap = scene.source.data[receiver.end : whole.end - len(node.attr.encode())].decode()
    lead = scene.source.data[whole.start : receiver.start].decode()
    parts = (lead, piece(scene.source, node.value), gap, target)
    return Edit(site, Outcome.CONVERTED, parts, name.rpartition(".")[0])


NAME = "torch.nn.Module.modules"


def over_modules(scene: Scene, node: ast.Attribute, name: str) -> Edit | None:
    """``for _, m in net.cells_and_names()``; None where the call stands elsewhere."""
    call = scene.parent(node)
    if name != NAME or not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    loop = scene.parent(call)
    if not isinstance(loop, (ast.For, ast.comprehension)) or loop.iter is not call:
        return None
    if not isinstance(loop.target, ast.Name) or _reads_underscore(scene):
        return None
    source = scene.source
    target, whole = source.span(loop.target), source.span(call)
    between = Piece(Span(target.end, whole.start))
    parts = ("_, ", Piece(target), between, piece(source, node.value), ".cells_and_names()")
    base = scene.site(name, node)
    site = Site(name, Span(target.start, whole.end), base.line, base.column)
    return Edit(site, Outcome.CONVERTED, parts, NAME)


def _reads_underscore(scene: Scene) -> bool:
    return "_" in scene.file.loads
