"""In: an analysed file. Out: edits by which each ``backward()`` starts from a loss of its own.

``y.backward(g)`` adds to the weights what ``(y * g).sum().backward()`` adds, as long as no gradient
goes through ``g``. ``errD_fake.backward(mone)`` is the usual way to turn a sign.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit
from migrate.training.leaves import is_fresh
from migrate.training.lines import Parts, edit
from migrate.training.marks import View

_LATER = ("retain_graph", "create_graph")


def weighted(view: View) -> Iterator[Edit]:
    """Yield ``(y * g.detach()).sum().backward()`` for ``y.backward(g)`` of Tensors."""
    source = view.file.source
    for call, _ in view.file.calls.get("backward", ()):
        func, given = call.func, _gradient(call)
        statement = isinstance(view.file.parents.get(id(call)), ast.Expr)
        if given is None or not statement or not isinstance(func, ast.Attribute):
            continue
        if view.atoms(func.value) != {"Tensor"} or view.atoms(given) != {"Tensor"}:
            continue
        rest: list[Parts] = [(f"{k.arg}=", piece(source, k.value)) for k in call.keywords
                             if k.arg in _LATER]  # fmt: skip
        cut = "" if is_fresh(view, given) else ".detach()"
        head: Parts = ("(", piece(source, func.value), " * ", piece(source, given), cut)
        tail = [p for number, one in enumerate(rest) for p in (", " * (number > 0), *one)]
        yield edit(source, source.span(call), (*head, ").sum().backward(", *tail, ")"))


def _gradient(call: ast.Call) -> ast.expr | None:
    """Return the gradient that a backward starts with; None where it is given other things."""
    named = {k.arg: k.value for k in call.keywords}
    if len(call.args) > 1 or set(named) - {"gradient", *_LATER}:
        return None
    if call.args:
        return None if "gradient" in named else call.args[0]
    return named.get("gradient")
