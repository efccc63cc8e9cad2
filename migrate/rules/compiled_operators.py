"""In: a call that loads or registers operators. Out: code without it, where rows know some of them.

What such a library registers is called as ``torch.ops.torchvision.nms``. Operators with a row need
nothing to be loaded or told to torch, and those without are flagged where they are called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.mapping.choice import Chosen
from migrate.mapping.table import is_pattern
from migrate.records.outcomes import Edit, Outcome, Refusal, Removal, Site, Span
from migrate.rules.registry import by_row, rewrites
from migrate.sites.scene import Scene, once_a_file


@by_row("load_library")
def load_library(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Remove ``torch.ops.load_library(path)``, with a statement that only finds the path."""
    statement = scene.parent(call)
    if not isinstance(statement, ast.Expr) or not _some_are_known(scene):
        return Refusal(
            site,
            "API104",
            "the operators that it loads have no counterpart",
            "write them as MindSpore Cells, or see mindspore.ops.Custom",
        )
    last = scene.source.span(statement)
    path = _finding(scene, statement, call)
    first = scene.source.span(path) if path is not None else last
    place = site.at(Span(first.start, last.end))
    return Removal(place, Outcome.CONVERTED, (), chosen.row.key, note=chosen.row.note)


@by_row("registration")
def registration(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Leave out a statement that tells torch about an operator, such as ``register_autograd``.

    Only ``torch.ops.SPACE.NAME`` reads it: with a row it has a gradient, without one it is flagged.
    """
    statement = scene.parent(call)
    name = call.args[0] if call.args else None
    text = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
    if not isinstance(statement, ast.Expr) or not text.partition("::")[2]:
        return Refusal(
            site,
            "API104",
            "it tells torch about an operator of its own",
            "write it and its gradient as a Cell with a bprop method, and call that",
        )
    place = scene.source.span(statement)
    place_of = site.at(place)
    return Removal(place_of, Outcome.CONVERTED, (), chosen.row.key, note=chosen.row.note)


def told_names(scene: Scene) -> list[Span]:
    """What ``library.impl(getattr(torch.ops.torchvision, name), fn)`` names: it is left out.

    So is what a question is about that ``asked`` answers.
    """
    asked_about = [scene.source.span(call.args[0]) for call in _questions(scene)]
    return asked_about + [
        scene.source.span(call.args[0])
        for call in scene.file.of(ast.Call)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "impl"
        and call.args
        and any(a.name == "torch.library.Library" for a in scene.kind(call.func.value))
    ]


def _some_are_known(scene: Scene) -> bool:
    """Whether the program calls a compiled operator that has a row of its own."""
    files = scene.inference.program.files.values()
    names = {ast.unparse(n) for f in files for n in f.of(ast.Attribute) if _is_operator(n)}
    return any(not is_pattern(row.key) for name in names for row in scene.table.rows(name))


def _is_operator(node: ast.Attribute) -> bool:
    """``torch.ops.SPACE.NAME``."""
    space = node.value
    ops = space.value if isinstance(space, ast.Attribute) else None
    return (
        isinstance(ops, ast.Attribute)
        and ops.attr == "ops"
        and isinstance(ops.value, ast.Name)
        and ops.value.id == "torch"
    )


def _finding(scene: Scene, statement: ast.stmt, call: ast.Call) -> ast.Assign | None:
    """The statement right before that binds the path, where nobody else reads it."""
    block = next(
        block
        for _, block in ast.iter_fields(scene.parent(statement) or statement)
        if isinstance(block, list) and statement in block
    )
    at = block.index(statement)
    before = block[at - 1] if at else None
    name = call.args[0] if len(call.args) == 1 else None
    if not isinstance(before, ast.Assign) or not isinstance(name, ast.Name):
        return None
    function = scene.function(call)
    inside = ast.walk(function.node) if function is not None else iter(scene.file.nodes)
    uses = [n for n in inside if isinstance(n, ast.Name) and n.id == name.id]
    bound = [one.id for one in before.targets if isinstance(one, ast.Name)]
    return before if bound == [name.id] and len(uses) == 2 else None


@rewrites()
def asked(scene: Scene) -> Iterator[Edit]:
    """Write True for ``if hasattr(aten, "name"):`` around definitions alone.

    What stands for the operator raises when a definition is used; nothing else depends on the
    answer.
    """
    for call in _questions(scene):
        yield Edit(scene.site("torch.ops", call), Outcome.CONVERTED, ("True",))


@once_a_file
def _questions(scene: Scene) -> list[ast.Call]:
    found = []
    for call in scene.file.of(ast.Call):
        around = scene.parent(call)
        if getattr(call.func, "id", "") != "hasattr" or len(call.args) != 2:
            continue
        if not isinstance(around, ast.If) or around.test is not call or around.orelse:
            continue
        kind = scene.kind(call.args[0])
        if not kind or not all(f"{a.name}.".startswith("torch.ops.") for a in kind):
            continue
        defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if all(isinstance(s, defined) for s in around.body):
            found.append(call)
    return found
