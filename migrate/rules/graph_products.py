"""In: comprehensions with two loops, pairs of Tensors. Out: forms that graph mode compiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.outcomes import Edit, Piece, Span
from migrate.rules import graph_scope
from migrate.rules.graph_scope import Rewriting, builtin, foreign
from migrate.scene import Scene

_CHOICES = ("itertools.combinations", "itertools.permutations",
            "itertools.combinations_with_replacement")  # fmt: skip
_GONE_THROUGH = ("list", "tuple", "zip", "enumerate", "sum", "len")
_PLACES = "ijkmn"


def rewrites(scene: Scene) -> Iterator[Rewriting]:
    """``[f(a, b) for a in x for b in y]`` and ``combinations(tensors, 2)``."""
    for node in graph_scope.nodes(scene, ast.ListComp, ast.GeneratorExp, ast.Call):
        made: Edit | None = None
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 2:
            made = _nested(scene, node)
        elif isinstance(node, ast.Call):
            made = _chosen(scene, node)
        if made is not None:
            yield Rewriting(node, (made,))


def over_numbers(scene: Scene, node: ast.Call) -> bool:
    """Whether graph mode goes through a call of itertools itself: it knows the numbers."""
    parent = scene.parent(node)
    gone = isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node
    if foreign(scene, node.func, "itertools.product"):
        return True
    counted = node.args and isinstance(node.args[0], ast.Call)
    ranged = counted and builtin(scene, node.args[0].func, "range")  # type: ignore[attr-defined]
    return gone and bool(ranged) and foreign(scene, node.func, *_CHOICES)


def _nested(scene: Scene, node: ast.ListComp | ast.GeneratorExp) -> Edit | None:
    """It is ``sum([[f(a, b) for b in y] for a in x], [])``: graph mode takes one loop each."""
    if any(g.is_async for g in node.generators):
        return None
    if isinstance(node, ast.GeneratorExp) and not _is_gone_through(scene, node):
        return None
    if not _is_python_sum(scene):
        return None
    source, whole = scene.source, scene.source.span(node)
    starts = []
    for before, generator in zip((node.elt, node.generators[0].iter), node.generators, strict=True):
        ahead = source.span(before).end
        starts.append(source.data.rfind(b"for", ahead, source.span(generator.target).start))
    if min(starts) < 0 or b"#" in source.data[whole.start : whole.end]:
        return None
    element = _stripped(scene, whole.start + 1, starts[0])
    first = _stripped(scene, starts[0], starts[1])
    second = _stripped(scene, starts[1], whole.end - 1)
    opens, closes = ("sum([[", "], [])")
    if isinstance(node, ast.GeneratorExp):  # its span has the parentheses of the call
        opens, closes = "(" + opens, closes + ")"
    parts = (opens, Piece(element), " ", Piece(second), "] ", Piece(first), closes)
    return graph_scope.edit(scene, node, whole, *parts)


def _is_python_sum(scene: Scene) -> bool:
    """Whether no import, definition or variable of the file takes the name; a method may."""
    return not any(
        graph_scope.bound_name(node) == "sum"
        for node in scene.file.nodes
        if not (isinstance(node, ast.FunctionDef) and scene.owner(node) is not None)
    )


def _stripped(scene: Scene, start: int, end: int) -> Span:
    data = scene.source.data[start:end]
    return Span(start + len(data) - len(data.lstrip()), end - len(data) + len(data.rstrip()))


def _is_gone_through(scene: Scene, node: ast.expr) -> bool:
    """Where a list does as well as an iterator."""
    parent = scene.parent(node)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    called = parent.func if isinstance(parent, ast.Call) else None
    return called is not None and any(builtin(scene, called, name) for name in _GONE_THROUGH)


def _chosen(scene: Scene, node: ast.Call) -> Edit | None:
    """``combinations(x, 2)`` is ``[(x[i], x[j]) for i, j in combinations(range(len(x)), 2)]``."""
    if not foreign(scene, node.func, *_CHOICES) or len(node.args) != 2 or node.keywords:
        return None
    items, count = node.args
    if any(a.kind == "dict" for a in scene.kind(items)):
        return None
    size = count.value if isinstance(count, ast.Constant) else 0
    if not isinstance(size, int) or not 2 <= size <= 4 or not _is_gone_through(scene, node):
        return None
    if not all(isinstance(n, (ast.Name, ast.Attribute, ast.expr_context)) for n in ast.walk(items)):
        return None
    taken = {n.id for n in ast.walk(items) if isinstance(n, ast.Name)}
    places = [p for p in _PLACES if p not in taken][:size]
    text = scene.source.text_of(items)
    each = ", ".join(f"{text}[{p}]" for p in places)
    function = Piece(scene.source.span(node.func))
    head = f"[({each}) for {', '.join(places)} in "
    parts = (head, function, f"(range(len({text})), {size})]")
    return graph_scope.edit(scene, node, scene.source.span(node), *parts)
