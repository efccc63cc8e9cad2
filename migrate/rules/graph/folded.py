"""In: a variable that an augmented assignment changes. Out: whether the memory is surely its own.

Graph mode adds in place. The compiler leaves out what changes nothing (``0 + x``, ``x + zeros``,
``x.tile((1, 1))``, a cast to and fro), and keeps what it computes beforehand: so the sum may be
written into an argument, a Parameter, an earlier value whose gradient is wrong then, or a constant
of the graph, with which the next call begins (docs/graph.md). ``x = x + y`` has no such effect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import Atom, is_all
from migrate.rules.called_from import functions_of, scene_of
from migrate.rules.torch_sharing import METADATA, layer_shares, shares
from migrate.sites.scene import Scene

_LEFT_OUT = frozenset("clone repeat tile positive add sub rsub where".split())
_HOLDING = ("torch.nn.Sequential", "torch.nn.Module", "torch.nn.DataParallel")
_SUMS = (ast.Add, ast.Sub)
_MADE_BY = ("mindspore.ops.", "mindspore.mint.", "mindspore.numpy.")
Seen = frozenset[int]


def is_own(scene: Scene, target: ast.expr) -> bool:
    """Return whether a variable surely holds a tensor that an operator made for it alone."""
    return isinstance(target, ast.Name) and _name(scene, target, frozenset())


def _name(scene: Scene, node: ast.Name, seen: Seen) -> bool:
    if id(node) in seen:
        return True  # decided by the other bindings
    seen |= {id(node)}
    bindings = scene.facts.reach_before(node.id, node).bindings
    return bool(bindings) and all(_bound(scene, b.place, seen) for b in bindings)


def _bound(scene: Scene, place: ast.AST, seen: Seen) -> bool:
    """Return whether what a place is bound to is new."""
    parent = scene.parent(place)
    if isinstance(parent, ast.AugAssign):
        kept = isinstance(parent.target, ast.Name) and "Tensor" in scene.kind_names(parent.target)
        return _name(scene, parent.target, seen) if kept else False  # type: ignore[arg-type]
    if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is not None:
        return place is not parent.value and _is_new(scene, parent.value, seen)
    around = scene.parent(parent) if isinstance(parent, ast.Tuple | ast.List) else None
    if isinstance(around, ast.Assign) and parent is not around.value:
        value = around.value
        if isinstance(value, ast.Tuple | ast.List):
            return all(_is_new(scene, part, seen) for part in value.elts)
        return _is_new(scene, value, seen)
    return False


def _is_new(scene: Scene, node: ast.expr, seen: Seen) -> bool:
    """Return whether an expression surely gives memory that nothing else has."""
    if isinstance(node, ast.Name):
        return _name(scene, node, seen)
    if isinstance(node, ast.Call):
        atoms = [a for a in scene.kind(node.func) if a.kind != "None"]
        return bool(atoms) and all(_made(scene, node, atom, seen) for atom in atoms)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        if isinstance(node.op, _SUMS):
            return all(_varies(scene, side, frozenset()) or _is_number(side) for side in sides)
        return any(_varies(scene, side, frozenset()) for side in sides)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub | ast.Invert) and _varies(
            scene, node.operand, frozenset()
        )
    if isinstance(node, ast.IfExp):
        return _is_new(scene, node.body, seen) and _is_new(scene, node.orelse, seen)
    if isinstance(node, ast.Subscript):
        return _is_new(scene, node.value, seen)
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT", "values", "indices") and _is_new(scene, node.value, seen)
    return isinstance(node, ast.Compare)


def _is_number(node: ast.expr) -> bool:
    """Return whether a number is written out with which a sum is another."""
    return isinstance(node, ast.Constant) and node.value not in (0, None)


def _made(scene: Scene, node: ast.Call, atom: Atom, seen: Seen) -> bool:
    """Return whether one alternative of a call gives new memory."""
    functions = functions_of(scene.inference, atom)
    if functions:
        return all(_gives_new(scene, function, seen) for function in functions)
    if atom.kind == "Module":
        return bool(atom.name) and not layer_shares(atom) and not atom.name.startswith(_HOLDING)
    if atom.kind not in ("ref", "method") or not atom.name.startswith("torch."):
        return False
    last = atom.name.rpartition(".")[2]
    given = [*node.args, *(k.value for k in node.keywords)]
    if atom.kind == "method" and isinstance(node.func, ast.Attribute):
        given = [node.func.value, *given]
    if shares(atom.name):
        return bool(given) and _is_new(scene, given[0], seen)
    rows = scene.table.rows(atom.name)
    if last == "clone" or not rows or last in _LEFT_OUT:
        return last == "clone" and any(_varies(scene, g, frozenset()) for g in given)
    by_method = atom.kind == "method"  # a helper may give back what it is passed
    return all(
        row.to.startswith(_MADE_BY) or (by_method and not row.to.startswith("helpers."))
        for row in rows
    )


def _gives_new(scene: Scene, function: Function, seen: Seen) -> bool:
    """Return whether all that a function of the program returns is new."""
    there = scene_of(scene, scene.inference.program.files[function.path])
    if id(function) in seen:
        return True
    seen |= {id(function)}
    return bool(function.returned) and all(
        value is not None and _parts_new(there, value, seen) for value in function.returned
    )


def _parts_new(scene: Scene, value: ast.expr, seen: Seen) -> bool:
    parts: Iterable[ast.expr] = value.elts if isinstance(value, ast.Tuple) else (value,)
    return all(_is_new(scene, part, seen) for part in parts)


def _varies(scene: Scene, node: ast.expr, seen: Seen) -> bool:
    """Return whether a value surely depends on what a call is given or on a layer: no constant."""
    if isinstance(node, ast.Name):
        if id(node) in seen:
            return False
        seen |= {id(node)}
        bindings = scene.facts.reach_before(node.id, node).bindings
        return bool(bindings) and all(_binding_varies(scene, b.place, node, seen) for b in bindings)
    if isinstance(node, ast.Attribute):
        return node.attr not in METADATA and _varies(scene, node.value, seen)
    if isinstance(node, ast.Call):
        if any(a.kind == "Module" for a in scene.kind(node.func)):
            return True
        asked = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Attribute) and node.func.attr in METADATA:
            return False
        given = [*node.args, *(k.value for k in node.keywords), *([asked] if asked else [])]
        made = scene.kind_names(node)
        return "Tensor" in made and any(_varies(scene, g, seen) for g in given)
    if isinstance(node, ast.BinOp):
        return _varies(scene, node.left, seen) or _varies(scene, node.right, seen)
    if isinstance(node, ast.UnaryOp):
        return _varies(scene, node.operand, seen)
    if isinstance(node, ast.Subscript | ast.Starred):
        return _varies(scene, node.value, seen)
    return False


def _binding_varies(scene: Scene, place: ast.AST, read: ast.Name, seen: Seen) -> bool:
    if isinstance(place, ast.arg):
        return is_all(scene.kind(read), "Tensor")
    parent = scene.parent(place)
    while isinstance(parent, ast.Tuple | ast.List):
        parent = scene.parent(parent)
    if isinstance(parent, ast.AugAssign):
        return _varies(scene, parent.value, seen) or _varies(scene, parent.target, seen)
    if isinstance(parent, ast.For | ast.comprehension):
        return _varies(scene, parent.iter, seen)
    value = getattr(parent, "value", None)
    return isinstance(value, ast.expr) and _varies(scene, value, seen)
