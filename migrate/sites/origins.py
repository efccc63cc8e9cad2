"""Tell where the numbers of an expression come from or go: complex, negative indexes, made whole.

Evidence only: what is not seen in the expression, or in the assignments of its local variables in
the same function, counts for nothing. MindSpore's logarithms are off by some hundred units in the
last place on CPU: nobody sees it in a loss, but ``log2(8).floor()`` is 2. Rows with the condition
``made whole`` (docs/table.md) are for such calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.sites.scene import Scene, once_a_file
from migrate.syntax.trees import children, last_name, within

_COMPLEX_CALLS = frozenset(
    "complex polar view_as_complex fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn ihfft stft "
    "cfloat cdouble".split()
)
# words of a program that may make complex numbers
_COMPLEX_WORDS = (b"complex", b"polar", b"fft", b"stft", b"cfloat", b"cdouble")


@dataclass(frozen=True)
class _Question:
    """A question about the origin of an operand.

    Below ``ends`` (a name, an attribute, a function) the search stops; of the arguments of
    functions only those of ``builders`` count. ``modulo``: a remainder answers it as well.
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
        "sqrt sum mean cos sin log pow ones zeros eye "
        "eig eigh qr svd inv det solve cholesky".split()
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
    shown = _showing_complex(scene)
    return bool(shown) and any(id(one) in shown for one in _made_of(scene, node, _COMPLEX))


def may_be_complex(scene: Scene, node: ast.expr) -> bool:
    """Return whether an operand may hold complex numbers: some do, or its origin is unseen and the
    program makes complex numbers. An argument that no call of the program passes counts as real.
    """
    if is_complex(scene, node):
        return True
    if not any(map(scene.inference.program.mentions, _COMPLEX_WORDS)):
        return False
    return any(_comes_from_elsewhere(scene, one) for one in _made_of(scene, node, _COMPLEX))


def _comes_from_elsewhere(scene: Scene, node: ast.AST) -> bool:
    """Return whether it is a parameter, an attribute, or a result of the program's functions."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        held = bool(scene.kind_names(node) & {"Tensor", "unknown"})
        return held and not (isinstance(node, ast.Name) and _bound(scene, node))
    called = scene.kind(node.func) if isinstance(node, ast.Call) else frozenset()
    return any(
        a.kind in ("function", "unknown", "partial")
        or (a.kind in ("method", "Module") and not a.name.startswith("torch."))
        for a in called
    )


@once_a_file
def _showing_complex(scene: Scene) -> frozenset[int]:
    """Return the nodes of the file that show complex numbers: most files have none."""
    nodes = (*scene.file.of(ast.Constant), *scene.file.of(ast.Call))
    return frozenset(id(n) for n in nodes if _shows_complex(n))


def _shows_complex(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, complex)
    if not isinstance(node, ast.Call):
        return False
    given = (*node.args, *(k.value for k in node.keywords))
    named = any(last_name(one) in ("complex64", "complex128") for one in given)
    return named or last_name(node.func) in _COMPLEX_CALLS


def is_negative(scene: Scene, index: ast.expr) -> bool:
    """Whether an index is made with a minus: differences, negative numbers."""
    return any(
        (isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub))
        or (isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub) and _tensor(scene, one))
        or (
            isinstance(one, ast.Call)
            and last_name(one.func) in ("neg", "negative", "sub", "subtract")
        )
        for one in _made_of(scene, index, _NEGATIVE)
    )


def _tensor(scene: Scene, node: ast.expr) -> bool:
    return "Tensor" in scene.kind_names(node)


def _made_of(scene: Scene, node: ast.AST, asked: _Question) -> Iterator[ast.AST]:
    """Yield the nodes of an expression and of the values of its variables, each once."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        name = last_name(node.func if isinstance(node, ast.Call) else node)
        ends = name in asked.ends or isinstance(node, (ast.Compare, ast.Slice))
        if id(node) in seen or ends or asked.stops(node):
            continue
        seen.add(id(node))
        yield node
        waiting += _parts(scene, node, asked, name)


def _parts(scene: Scene, node: ast.AST, asked: _Question, name: str) -> Sequence[ast.AST]:
    """What a node is made of, or what a variable was bound to."""
    if isinstance(node, ast.Name):
        return _bound(scene, node)
    if isinstance(node, ast.Subscript):  # its index says nothing of its elements
        return [node.value]
    if isinstance(node, ast.Call):
        held = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*held, *(node.args if name in asked.builders else ())]
    return children(node)


def _bound(scene: Scene, node: ast.Name) -> list[ast.expr]:
    """What the function assigns to a local variable of it; without what is made of itself."""
    function = scene.function(node)
    if function is None or node.id not in function.locals:
        return []
    return [
        one.value
        for one in function.assigned.get(node.id, ())
        if not any(n is node for n in within(one.value))
    ]


_CUTTING = frozenset({"floor", "floor_", "ceil", "ceil_", "trunc", "trunc_", "fix", "round",
                      "round_", "long", "int", "short", "floor_divide", "bucketize"})  # fmt: skip
_CASTING = frozenset({"to", "type", "astype"})
_WHOLE_DTYPES = frozenset({"long", "int", "short", "int8", "int16", "int32", "int64", "uint8"})
# what gives its operand on, more or less as it was
_PASSING = frozenset(
    """
    abs add clamp clamp_ clamp_max clamp_min clip clone contiguous cpu detach div double expand
    flatten float item max maximum min minimum mul neg permute reshape squeeze stack cat sub
    transpose unsqueeze view where
    """.split()
)


def is_made_whole(scene: Scene, node: ast.expr) -> bool:
    """Whether the value of ``node``, or what is computed of it at once, loses its fraction."""
    return _cut(scene, node, frozenset())


def _cut(scene: Scene, node: ast.expr, seen: frozenset[str]) -> bool:
    parent = scene.parent(node)
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.FloorDiv) or _cut(scene, parent, seen)
    if isinstance(parent, (ast.UnaryOp, ast.IfExp, ast.Subscript, ast.Tuple, ast.List)):
        return _cut(scene, parent, seen)
    if isinstance(parent, ast.keyword):
        call = scene.parent(parent)
        return isinstance(call, ast.Call) and _called(scene, call, call.func, seen)
    if isinstance(parent, ast.Call) and node is not parent.func:
        return _called(scene, parent, parent.func, seen)
    if isinstance(parent, ast.Attribute):
        call = scene.parent(parent)
        return isinstance(call, ast.Call) and _called(scene, call, parent, seen)
    if isinstance(parent, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return any(_read_whole(scene, t, seen) for t in targets if isinstance(t, ast.Name))
    return False


def _called(scene: Scene, call: ast.Call, func: ast.expr, seen: frozenset[str]) -> bool:
    """Return whether a call cuts off the fraction of its argument or receiver."""
    last = last_name(func)
    if last in _CASTING:
        given = [*call.args, *(k.value for k in call.keywords)]
        return any(_is_whole_dtype(one) for one in given)
    return last in _CUTTING or (last in _PASSING and _cut(scene, call, seen))


def _is_whole_dtype(node: ast.expr) -> bool:
    last = last_name(node)
    return last in _WHOLE_DTYPES


def _read_whole(scene: Scene, target: ast.Name, seen: frozenset[str]) -> bool:
    """Whether the name that holds the value is cut anywhere in its function."""
    function = scene.function(target)
    if target.id in seen:
        return False
    nodes = ast.walk(function.node) if function is not None else scene.file.nodes
    return any(
        _cut(scene, node, seen | {target.id})
        for node in nodes
        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
    )
