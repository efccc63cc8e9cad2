"""In: an analysed file. Out: edits that make Parameters of the tensors that it trains by name.

``w = torch.randn(3, 2, requires_grad=True)`` of which ``w.grad`` is read, or which an optimizer is
given, becomes ``leaf(torch.randn(3, 2), "w")``; ``w -= step`` changes it in place. Only what was
made for that name alone is one: a Parameter has memory of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Span
from migrate.rules.torch_sharing import shares
from migrate.syntax.lines import shares_line, whole
from migrate.syntax.trees import dotted
from migrate.training.lines import Parts, edit
from migrate.training.marks import View, block_of

_SHARING = ("from_numpy", "as_tensor", "asarray", "frombuffer", "view_as_real", "reshape")
_SIGNS = {ast.Add: "add_", ast.Sub: "sub_", ast.Mult: "mul_", ast.Div: "div_"}


@dataclass(frozen=True)
class Leaf:
    """``value`` makes the tensor; ``span`` of the binding is what is wrapped; ``switch`` is the
    statement that says that it is to be trained, where the binding does not."""

    name: str
    binding: ast.Assign
    value: ast.expr
    keyword: ast.keyword | None = None
    switch: ast.stmt | None = None


def made_parameters(view: View, own: str) -> list[Edit]:
    """The edits; none in files that train Modules only."""
    if b"requires_grad" not in view.file.source.data:
        return []
    wanted = _trained(view)
    found = [leaf for leaf in _leaves(view) if leaf.name in wanted and not _in_module(view, leaf)]
    edits = [e for leaf in found for e in _edits(view, leaf, own)]
    return edits + list(_changes(view, {leaf.name for leaf in found}))


def _trained(view: View) -> set[str]:
    """Names of which the gradient is read, or which stand in the call of an optimizer."""
    found = {dotted(n.value) for n in view.file.of(ast.Attribute) if n.attr == "grad"}
    for call in view.file.of(ast.Call):
        if view.atoms(call) == {"Optimizer"}:
            parts = [n for a in call.args[:1] for n in ast.walk(a)]
            parts += [n for k in call.keywords if k.arg == "params" for n in ast.walk(k.value)]
            found |= {dotted(n) for n in parts}
    return found - {""}


def _leaves(view: View) -> Iterator[Leaf]:
    for item in view.file.of(ast.Assign):
        name = dotted(item.targets[0]) if len(item.targets) == 1 else ""
        if name and not shares_line(view.file.source, item):
            value, keyword = _asked(view, item.value)
            if value is not None:
                yield Leaf(name, item, value, keyword)
            elif is_fresh(view, item.value):
                switch = _switched_on(view, item, name)
                if switch is not None:
                    yield Leaf(name, item, item.value, None, switch)


def _asked(view: View, node: ast.expr) -> tuple[ast.expr | None, ast.keyword | None]:
    """What ``requires_grad=True`` or ``.requires_grad_()`` makes a leaf of, and the keyword."""
    if not isinstance(node, ast.Call):
        return None, None
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr == "requires_grad_" and _is_on(node.args):
        return (func.value if is_fresh(view, func.value) else None), None
    for keyword in node.keywords:
        constant = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        if keyword.arg == "requires_grad" and constant and is_fresh(view, node):
            return node, keyword
    return None, None


def _is_on(given: list[ast.expr]) -> bool:
    return not given or (isinstance(given[0], ast.Constant) and given[0].value is True)


def is_fresh(view: View, node: ast.expr) -> bool:
    """Whether nobody else holds the memory of a tensor."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return view.atoms(node) == {"Tensor"}
    if not isinstance(node, ast.Call):
        return False
    names = view.torch_names(node.func)
    if names:
        last = {n.rpartition(".")[2] for n in names}
        if any(n.endswith("Tensor") for n in last) and not all(map(view.atoms, node.args)):
            return False  # torch.Tensor(t) is another name for t
        if any("Tensor" in view.atoms(a) for a in node.args if "Tensor" in "".join(last)):
            return False
        return view.atoms(node) == {"Tensor"} and not last & {*_SHARING, "Parameter", "Variable"}
    if not isinstance(node.func, ast.Attribute):
        return False
    inplace = node.func.attr.endswith("_")
    made = not inplace and not shares(node.func.attr) and view.atoms(node) == {"Tensor"}
    if made and view.atoms(node.func.value) == {"Tensor"}:
        return True  # ``x.sum(0)``
    return node.func.attr == "clone" or is_fresh(view, node.func.value)


def _switched_on(view: View, binding: ast.Assign, name: str) -> ast.stmt | None:
    """``w.requires_grad_()`` or ``w.requires_grad = True`` next to the binding of ``w``."""
    block, _ = block_of(view, binding)
    for item in block[block.index(binding) + 1 :]:
        if name not in {dotted(n) for n in ast.walk(item)}:
            continue
        call = item.value if isinstance(item, ast.Expr) else None
        if isinstance(call, ast.Call) and dotted(call.func) == f"{name}.requires_grad_":
            return item if _is_on(call.args) and not shares_line(view.file.source, item) else None
        plain = isinstance(item, ast.Assign) and len(item.targets) == 1
        if plain and isinstance(item, ast.Assign) and _is_on([item.value]):
            same = dotted(item.targets[0]) == f"{name}.requires_grad"
            return item if same and not shares_line(view.file.source, item) else None
        return None
    return None


def _in_module(view: View, leaf: Leaf) -> bool:
    """An attribute of a Module: as a Parameter it would be one of the Module's own."""
    if "." not in leaf.name:
        return False
    owner = view.file.classes.get(id(view.file.holder(leaf.binding, ast.ClassDef)))
    return owner is None or view.inference.is_module(owner.key)


# -- what is written ----------------------------------------------------------------------------


def _edits(view: View, leaf: Leaf, own: str) -> Iterator[Edit]:
    source = view.file.source
    short = leaf.name.rpartition(".")[2]
    wrapped = piece(source, leaf.value)
    yield edit(
        view.file.source,
        source.span(leaf.binding.value),
        (f"{own}.leaf(", wrapped, f', "{short}")'),
    )
    if leaf.keyword is not None:
        yield edit(source, source.span(leaf.keyword), ("requires_grad=False",))
    if leaf.switch is not None:
        span = whole(source, leaf.switch)
        yield edit(source, Span(span.start, min(span.end + 1, len(source.data))), ())


def _changes(view: View, names: set[str]) -> Iterator[Edit]:
    """``w -= step`` is ``w.sub_(step)``: it binds no name."""
    source = view.file.source
    for item in view.file.of(ast.AugAssign):
        if dotted(item.target) in names and type(item.op) in _SIGNS:
            target, value = piece(source, item.target), piece(source, item.value)
            parts: Parts = (target, f".{_SIGNS[type(item.op)]}(", value, ")")
            yield edit(source, source.span(item), parts)
