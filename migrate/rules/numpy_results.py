"""Make Tensors again of what numpy's functions of elements give for Tensors, as torch does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.types.kinds import is_all
from migrate.analysis.types.python_results import is_of_elements
from migrate.records.outcomes import Edit, Outcome, Piece
from migrate.sites.scene import Scene


def wrapped(scene: Scene) -> Iterator[Edit]:
    """Yield ``ms.Tensor(np.sin(x))`` for ``np.sin(x)`` of a Tensor.

    Where nothing tells whether it is one, ``of_elements(np.sin)(x)`` asks.
    """
    for call in scene.file.of(ast.Call):
        names = [a.name for a in scene.kind(call.func) if a.kind == "foreign"]
        if not names or not all(map(is_of_elements, names)):
            continue
        tensors = [arg for arg in call.args if "Tensor" in scene.kind_names(arg)]
        if not tensors:
            continue
        site, span = scene.site("torch.Tensor.__array_wrap__", call), scene.source.span(call)
        if any(is_all(scene.kind(arg), "Tensor") for arg in tensors):
            text, root = scene.spelling.local("mindspore.Tensor")
            outcome = Outcome.CONVERTED
        else:
            text, root = scene.spelling.local("helpers.of_elements")
            outcome, span = Outcome.HELPER, scene.source.span(call.func)
        parts = (f"{text}(", Piece(span), ")")
        yield Edit(replace(site, span=span), outcome, parts, needs=frozenset((root,)))
