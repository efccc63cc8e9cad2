"""Make Tensors again of what numpy's functions of elements give for Tensors, as torch does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.types.kinds import is_all
from migrate.analysis.types.python_results import is_of_elements
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece
from migrate.sites.scene import Scene


def wrapped(scene: Scene) -> Iterator[Edit]:
    """Yield ``ms.Tensor(np.sin(x))`` for ``np.sin(x)`` of a Tensor; what may be one is asked."""
    for call in scene.file.of(ast.Call):
        names = [a.name for a in scene.kind(call.func) if a.kind == "foreign"]
        if not names or not all(map(is_of_elements, names)):
            continue
        tensors = [arg for arg in call.args if "Tensor" in scene.kind_names(arg)]
        sure = any(is_all(scene.kind(arg), "Tensor") for arg in tensors)
        if not tensors or not (sure or isinstance(tensors[0], (ast.Name, ast.Attribute))):
            continue
        text, root = scene.spelling.local("mindspore.Tensor")
        site, span = scene.site("torch.Tensor.__array_wrap__", call), scene.source.span(call)
        parts: tuple[str | Piece, ...] = (f"{text}(", Piece(span), ")")
        if not sure:
            asked = piece(scene.source, tensors[0])
            parts = ("(", *parts, " if isinstance(", asked, f", {text}) else ", Piece(span), ")")
        yield Edit(replace(site, span=span), Outcome.CONVERTED, parts, needs=frozenset((root,)))
