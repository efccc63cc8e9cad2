"""Answer questions for the layout of a Tensor: in MindSpore it is dense, and contiguous if need be.

``x.layout == torch.sparse_coo`` is False; what would make a sparse tensor is flagged, or becomes an
object of another class. ``if not x.is_contiguous(): x = x.contiguous()`` has nothing to do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.types.kinds import is_all
from migrate.records.outcomes import Edit, Outcome, Span
from migrate.rules.registry import rewrites
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene

_DENSE = "torch.strided"
_SPARSE = frozenset(
    f"torch.{n}" for n in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
)
_EQUAL, _OTHER = (ast.Eq, ast.Is, ast.In), (ast.NotEq, ast.IsNot, ast.NotIn)


def _answers(scene: Scene) -> Iterator[tuple[ast.Compare, bool]]:
    for node in scene.file.of(ast.Compare):
        left, right = node.left, node.comparators[0]
        if len(node.ops) != 1 or not isinstance(node.ops[0], (*_EQUAL, *_OTHER)):
            continue
        if not isinstance(left, ast.Attribute) or left.attr != "layout":
            continue
        if not isinstance(left.value, ast.Name) or not is_all(scene.kind(left.value), "Tensor"):
            continue
        several = isinstance(right, (ast.Tuple, ast.List, ast.Set))
        names = {direct_name(scene, n) for n in (right.elts if several else [right])}  # type: ignore[attr-defined]
        if names and names <= _SPARSE | {_DENSE}:
            yield node, (_DENSE in names) == isinstance(node.ops[0], _EQUAL)


def _contiguous(scene: Scene) -> Iterator[ast.Call]:
    """Yield the questions of statements that make a tensor contiguous and do no more."""
    for call in scene.file.of(ast.Call):
        func, test = call.func, scene.parent(call)
        if not isinstance(func, ast.Attribute) or func.attr != "is_contiguous" or call.args:
            continue
        around = scene.parent(test) if isinstance(test, ast.UnaryOp) else None
        if not isinstance(around, ast.If) or around.test is not test or around.orelse:
            continue
        name = ast.unparse(func.value)
        if [ast.unparse(s) for s in around.body] == [f"{name} = {name}.contiguous()"]:
            yield call


def spans(scene: Scene) -> list[Span]:
    """Return where no reference asks for a decision: the whole question is answered."""
    answered = [node for node, _ in _answers(scene)]
    return [scene.source.span(node) for node in (*answered, *_contiguous(scene))]


@rewrites()
def answers(scene: Scene) -> Iterator[Edit]:
    """Answer questions about the layout of a Tensor, which is dense in MindSpore."""
    for node, answer in _answers(scene):
        yield Edit(scene.site("torch.Tensor.layout", node), Outcome.CONVERTED, (str(answer),))
    for call in _contiguous(scene):
        yield Edit(scene.site("torch.Tensor.is_contiguous", call), Outcome.CONVERTED, ("True",))
