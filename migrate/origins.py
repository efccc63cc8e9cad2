"""In: an expression. Out: whether what it was made of shows complex numbers, or negative indexes.

Evidence only: what is not seen in the expression, or in the assignments of its local variables in
the same function, counts for nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.scene import Scene

_COMPLEX_CALLS = frozenset(
    "complex polar view_as_complex fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn ihfft stft "
    "cfloat cdouble".split()
)


@dataclass(frozen=True)
class _Question:
    """What is asked of an operand.

    Below ``ends`` (a name, an attribute, a function) nothing tells; of the arguments of functions
    only those of ``builders`` do. ``modulo``: a remainder answers it as well.
    """

    ends: frozenset[str]
    builders: frozenset[str]
    modulo: bool = False

    def stops(self, node: ast.AST) -> bool:
        return self.modulo and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


_COMPLEX = _Question(
    frozenset("real imag abs angle view_as_real shape irfft irfft2 irfftn hfft istft".split()),
    frozenset(
        "tensor as_tensor full cat stack where exp conj mul sub add div neg einsum matmul "
        "sqrt sum mean cos sin log pow".split()
    ),
)
_NEGATIVE = _Question(
    frozenset(
        "abs clamp clip remainder argmax argmin argsort nonzero topk sort searchsorted shape "
        "bucketize bincount multinomial randperm relu size".split()
    ),
    frozenset("tensor as_tensor LongTensor IntTensor arange full randint cat stack where".split()),
    True,
)


def is_complex(scene: Scene, node: ast.expr) -> bool:
    """Whether an operand surely holds complex numbers somewhere in what makes it."""
    return any(_shows_complex(one) for one in _made_of(scene, node, _COMPLEX))


def _shows_complex(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, complex)
    if not isinstance(node, ast.Call):
        return False
    given = (*node.args, *(k.value for k in node.keywords))
    named = any(_last(one) in ("complex64", "complex128") for one in given)
    return named or _last(node.func) in _COMPLEX_CALLS


def is_negative(scene: Scene, index: ast.expr) -> bool:
    """Whether an index is made with a minus: differences, negative numbers."""
    return any(
        (isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub))
        or (isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub) and _tensor(scene, one))
        or (isinstance(one, ast.Call) and _last(one.func) in ("neg", "negative", "sub", "subtract"))
        for one in _made_of(scene, index, _NEGATIVE)
    )


def _tensor(scene: Scene, node: ast.expr) -> bool:
    return "Tensor" in scene.kind_names(node)


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))


def _made_of(
    scene: Scene, node: ast.AST, asked: _Question, seen: frozenset[int] = frozenset()
) -> Iterator[ast.AST]:
    """The nodes of an expression, and of what its variables were bound to, that may tell."""
    name = _last(node.func if isinstance(node, ast.Call) else node)
    if name in asked.ends or isinstance(node, (ast.Compare, ast.Slice)) or asked.stops(node):
        return
    yield node
    parts: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Name):
        parts = [value for value in _bound(scene, node) if id(value) not in seen]
        seen = seen | {id(value) for value in parts}
    elif isinstance(node, ast.Subscript):  # its index says nothing of its elements
        parts = [node.value]
    elif isinstance(node, ast.Call):
        held = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts = [*held, *(node.args if name in asked.builders else ())]
    for part in parts:
        yield from _made_of(scene, part, asked, seen)


def _bound(scene: Scene, node: ast.Name) -> list[ast.expr]:
    """What the function assigns to a local variable of it; without what is made of itself."""
    function = scene.function(node)
    if function is None or node.id not in function.locals:
        return []
    return [
        one.value
        for one in ast.walk(function.node)
        if isinstance(one, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == node.id for t in one.targets)
        and not any(n is node for n in ast.walk(one.value))
    ]
