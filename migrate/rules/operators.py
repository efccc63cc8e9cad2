"""In: an operator on a Tensor that MindSpore takes otherwise. Out: its name; the edit that helps.

Measured: ``~`` of whole numbers gives a bool, a number of numpy on the left makes an array (without
gradient) of the Tensor, a negative index has no gradient in PyNative, a complex operand with a
real one has no kernel, an index that is a range is read as a tuple in graph mode, a matrix product
over no elements is what lay in memory; shifts, arrays as an index and formats raise. All other
operators, promotions and conversions agree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.types.kinds import ARRAY, is_all, may_be_numpys
from migrate.analysis.types.python_results import is_of_elements
from migrate.codegen.substitution import Renderer, piece
from migrate.mapping.calls import BoundCall
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.rules.calling import template_of
from migrate.rules.registry import decides, rewrites
from migrate.sites.operator_names import OPERATORS, WORDED, times, wide_number
from migrate.sites.references import Form
from migrate.sites.scene import Scene

_ELEMENTWISE = frozenset(
    "sqrt cbrt square exp exp2 expm1 log log2 log10 log1p sin cos tan tanh abs fabs floor ceil "
    "rint power float_power maximum minimum float16 float32 float64 int32 int64 prod sum "
    "mean".split()
)
_FUNCTIONS = {
    ast.Add: "mindspore.ops.add",
    ast.Sub: "mindspore.ops.sub",
    ast.Mult: "mindspore.ops.mul",
    ast.Div: "mindspore.ops.div",
    ast.Pow: "mindspore.ops.pow",
}
_ROWS = {
    "__invert__": "torch.bitwise_not",
    "__lshift__": "torch.bitwise_left_shift",
    "__matmul__": "torch.matmul",
    "__rshift__": "torch.bitwise_right_shift",
}


@decides(Form.OPERATOR)
def decide(scene: Scene, node: ast.expr, name: str) -> Edit | Refusal:
    """Rewrite operators whose operands MindSpore takes in another way: numpy, complex, places."""
    site = Site(name, scene.source.span(node), *_place(scene, node))
    short = name.removeprefix(OPERATORS)
    if short.endswith(WORDED):
        why = "it changes a Tensor in place, which MindSpore's method of that name does to none"
        site = replace(site, name=name.removesuffix(WORDED))
        return Refusal(
            site, "INP201", why, "write the method or operator itself: x.add_(y), x += y"
        )
    if short == "__is__":
        why = "torch gives the Tensor itself where nothing has to be converted"
        return Refusal(site, "INP106", why, "compare dtypes, shapes or values instead")
    if short == "__format__":
        return Edit(site, Outcome.CONVERTED, (piece(scene.source, node), ".item()"))
    if short == "__format__:maybe":
        text, root = scene.spelling.local("helpers.as_number")
        parts = (f"{text}(", Piece(site.span), ")")
        return Edit(site, Outcome.HELPER, parts, needs=frozenset((root,)))
    if short == "__format__:dict":
        text, root = scene.spelling.local("helpers.as_numbers")
        parts = (f"{text}(", Piece(site.span), ")")
        return Edit(site, Outcome.HELPER, parts, needs=frozenset((root,)))
    if short == "__abs__":
        assert isinstance(node, ast.Call)
        text, root = scene.spelling.local("helpers.absolute")
        parts = (f"{text}(", piece(scene.source, node.args[0]), ")")
        return Edit(site, Outcome.HELPER, parts, needs=frozenset((root,)))
    if short.endswith(":place"):
        return _index(scene, site, node)
    if isinstance(node, ast.UnaryOp) and short.endswith(":maybe"):
        text, root = scene.spelling.local("helpers.inverted")
        parts = (f"{text}(", piece(scene.source, node.operand), ")")
        return Edit(site, Outcome.HELPER, parts, needs=frozenset((root,)))
    if isinstance(node, ast.UnaryOp):
        return _by_row(scene, site, _ROWS[short], {"input": node.operand})
    if isinstance(node, ast.BinOp) and short.endswith(":complex"):
        return _of_complex(scene, site, node)
    if isinstance(node, ast.BinOp) and short.endswith(":times"):
        number = times(scene, node)
        assert number is not None
        parts = ("int(", piece(scene.source, number), ")")
        return Edit(site.at(scene.source.span(number)), Outcome.CONVERTED, parts)
    if isinstance(node, (ast.BinOp, ast.Call)) and short.endswith(":number"):
        return _beside(scene, site, node)
    if isinstance(node, ast.BinOp) and short in _ROWS:
        return _by_row(scene, site, _ROWS[short], {"input": node.left, "other": node.right})
    if isinstance(node, ast.BinOp) and short.endswith(":maybe"):
        function, root = scene.spelling.local(_FUNCTIONS[type(node.op)])
        left, right = (piece(scene.source, side) for side in (node.left, node.right))
        called = (f"{function}(", left, ", ", right, ")")
        return Edit(site, Outcome.CONVERTED, called, needs=frozenset((root,)))
    if isinstance(node, ast.BinOp):
        return _left_of_tensor(scene, site, node)
    assert isinstance(node, ast.Subscript)
    return _from_start(scene, site, node)


def _place(scene: Scene, node: ast.expr) -> tuple[int, int]:
    site = scene.site("", node)
    return site.line, site.column


def _by_row(scene: Scene, site: Site, name: str, values: dict[str, ast.expr]) -> Edit | Refusal:
    """What the row of the function says that computes the same."""
    row = next(iter(scene.table.rows(name)), None)
    if row is None or not row.to or not row.signatures:
        return Refusal(site, "API101", f"the table has no row for {name}", "write it by hand")
    bound = BoundCall(row.signatures[0], values, tuple(values), frozenset())
    chosen = Chosen(row, bound, True)
    renderer = Renderer(scene.source, scene.spelling, scene.table, chosen.bound)
    made = renderer.render(template_of(scene, row))
    helper = any(n.startswith("helpers.") for n in made.needs)
    outcome = Outcome.HELPER if helper else Outcome.CONVERTED
    return Edit(site, outcome, made.parts, row.key, made.needs, row.note)


def _left_of_tensor(scene: Scene, site: Site, node: ast.BinOp) -> Edit | Refusal:
    """``np.sqrt(d) * x``: numpy would compute it, and give an array."""
    left = node.left
    number = piece(scene.source, left)
    if _gives_number(scene, left):
        return Edit(site.at(number.span), Outcome.CONVERTED, ("float(", number, ")"))
    if scene.kind(left) == ARRAY and not isinstance(left, ast.Subscript):
        return Refusal(
            site,
            "DTY110",
            "an array stands on the left of a Tensor: numpy would compute it, without gradient",
            "make a Tensor of it",
        )
    text, root = scene.spelling.local("helpers.plain_number")
    parts = (f"{text}(", number, ")")
    return Edit(site.at(number.span), Outcome.HELPER, parts, needs=frozenset((root,)))


def _gives_number(scene: Scene, node: ast.expr) -> bool:
    """A number that numpy has drawn; an elementwise function of numpy's, called with numbers."""
    if may_be_numpys(scene.kind(node)):
        return True
    if not isinstance(node, ast.Call) or not node.args or node.keywords:
        return False
    names = {a.name.removeprefix("numpy.") for a in scene.kind(node)}
    numbers = all(is_all(scene.kind(a), "int", "float", "bool") for a in node.args)
    return numbers and names <= _ELEMENTWISE


def _of_complex(scene: Scene, site: Site, node: ast.BinOp) -> Edit:
    """``z * x`` is ``complex_product(z, x)``, ``z + x`` is ``ops.add(*complex_pair(z, x))``: the
    kernels take operands of one dtype, and those of products have no gradient."""
    own = {ast.Mult: "helpers.complex_product", ast.Div: "helpers.complex_quotient"}
    if type(node.op) in own and all(
        is_all(scene.kind(s), "Tensor") for s in (node.left, node.right)
    ):
        text, needed = scene.spelling.local(own[type(node.op)])
        sides = [piece(scene.source, side) for side in (node.left, node.right)]
        made = (f"{text}(", sides[0], ", ", sides[1], ")")
        return Edit(site, Outcome.HELPER, made, needs=frozenset((needed,)))
    function, root = scene.spelling.local(_FUNCTIONS[type(node.op)])
    pair, helper = scene.spelling.local("helpers.complex_pair")
    left, right = (piece(scene.source, side) for side in (node.left, node.right))
    parts = (f"{function}(*{pair}(", left, ", ", right, "))")
    return Edit(site, Outcome.HELPER, parts, needs=frozenset((root, helper)))


def _beside(scene: Scene, site: Site, node: ast.BinOp | ast.Call) -> Edit:
    """``x + n.double()`` is ``x + as_beside(n.double(), x)``: n, without dimensions, has no say."""
    found = wide_number(scene, node)
    assert found is not None
    side, other = found
    text, root = scene.spelling.local("helpers.as_beside")
    place = site.at(scene.source.span(side))
    parts = (f"{text}(", piece(scene.source, side), ", ", piece(scene.source, other), ")")
    return Edit(place, Outcome.HELPER, parts, needs=frozenset((root,)))


def _from_start(scene: Scene, site: Site, node: ast.Subscript) -> Edit:
    """``x[i]`` is ``x[i % x.shape[0]]``: negative numbers lose their gradient."""
    index, held = piece(scene.source, node.slice), piece(scene.source, node.value)
    place = site.at(index.span)
    if isinstance(node.slice, ast.List):
        text, root = scene.spelling.local("mindspore.tensor")
        parts: tuple[str | Piece, ...] = (f"{text}(", index, ") % ", held, ".shape[0]")
        return Edit(place, Outcome.CONVERTED, parts, needs=frozenset((root,)))
    tight = piece(scene.source, node.slice)
    return Edit(place, Outcome.CONVERTED, (tight, " % ", held, ".shape[0]"))


def _index(scene: Scene, site: Site, node: ast.expr) -> Edit:
    """``x[range(2)]`` is ``x[list(range(2))]``; an array becomes a Tensor."""
    atoms = scene.kind(node)
    target = "helpers.as_index"
    if atoms == ARRAY:
        target = "mindspore.Tensor"
    elif not any(a.kind in ("instance", "tuple") for a in atoms):
        target = "list"
    text, root = scene.spelling.local(target) if target != "list" else (target, "")
    parts = (f"{text}(", Piece(site.span), ")")
    outcome = Outcome.HELPER if target.startswith("helpers.") else Outcome.CONVERTED
    return Edit(site, outcome, parts, needs=frozenset((root,) if root else ()))


@rewrites()
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
