"""Decide reads of a weight that MindSpore's Cell keeps in another shape than torch's layer.

A convolution over one axis has an axis more there. Code that computes with the weight gets torch's
shape, code that fills it as a whole gets the Parameter, and any other use is flagged.
"""

from __future__ import annotations

import ast
from enum import Enum

from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Refusal
from migrate.rules.alias_walk import summary
from migrate.rules.torch_sharing import is_written, shares
from migrate.sites.scene import Scene
from migrate.syntax.trees import last_name

# what is the same for the Parameter and for its values in another shape
_OF_ANY_SHAPE = frozenset(
    """
requires_grad requires_grad_ grad name device dtype is_leaf numel nelement element_size
is_floating_point is_complex is_cuda register_hook
""".split()
)
_ASKING = ("isinstance", "type", "id", "hasattr", "len")
_COMPUTING = (ast.BinOp, ast.UnaryOp, ast.AugAssign, ast.FormattedValue)


class Use(Enum):
    """What a place does with a weight."""

    READ = "its values count, in torch's shape"
    WHOLE = "the Parameter itself is meant"
    OTHER = "neither is known"


def layouts(scene: Scene, classes: tuple[str, ...], attribute: str) -> frozenset[str]:
    """Return the changes of shape between torch's weight and those of some classes."""
    rows = (row for owner in classes for row in scene.table.rows(owner))
    return frozenset(row.layout.get(attribute, "") for row in rows)


def decide(scene: Scene, node: ast.Attribute, name: str, found: frozenset[str]) -> Edit | Refusal:
    """Give ``conv.weight`` torch's shape where it is read; ``found``: the changes of shape."""
    site, how = scene.site(name, node), use(scene, node)
    if how is Use.WHOLE:
        return Edit(site, Outcome.KEPT, None, name)
    layout = next(filter(None, sorted(found)))
    if how is Use.OTHER or not layout.startswith("unsqueeze("):
        why = f"the Cell keeps {node.attr} in another shape ({layout})"
        return Refusal(site, "API110", why, "compute with its values where the Cell is")
    if len(found) > 1:
        return by_helper(scene, node, name)
    parts = (piece(scene.source, node), "." + layout.removeprefix("un"))
    return Edit(site, Outcome.CONVERTED, parts, name.rpartition(".")[0])


def by_helper(scene: Scene, node: ast.Attribute, name: str) -> Edit:
    """Let a helper look which layer it is."""
    text, root = scene.spelling.local("helpers.shaped_weight")
    parts = (f"{text}(", piece(scene.source, node.value), ")")
    return Edit(scene.site(name, node), Outcome.HELPER, parts, "", frozenset((root,)))


def use(scene: Scene, node: ast.expr) -> Use:
    """Return what the place of an expression does with the weight that it is."""
    parent = scene.parent(node)
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        value = parent.value if isinstance(parent, ast.Assign) else None
        return Use.WHOLE if isinstance(value, ast.Constant) or _is_tied(scene, node) else Use.OTHER
    if isinstance(parent, ast.Attribute):
        return _member(scene, parent)
    if isinstance(parent, ast.Compare):
        same = any(isinstance(op, (ast.Is, ast.IsNot)) for op in parent.ops)
        return Use.WHOLE if same else Use.READ
    if isinstance(parent, ast.keyword):
        call = scene.parent(parent)
        return _passed(scene, call, node, parent.arg) if isinstance(call, ast.Call) else Use.OTHER
    if isinstance(parent, ast.Call):
        return _passed(scene, parent, node, None)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.value is node:
        if isinstance(parent.targets[0], ast.Name):
            return Use.OTHER if _is_changed(scene, node) else Use.READ
        return Use.WHOLE if _is_tied(scene, parent.targets[0]) else Use.OTHER
    if isinstance(parent, ast.Expr):
        return Use.WHOLE
    if isinstance(parent, (ast.Subscript, *_COMPUTING)):
        return Use.OTHER if _is_changed(scene, node) else Use.READ
    return Use.OTHER


def _member(scene: Scene, node: ast.Attribute) -> Use:
    if node.attr in _OF_ANY_SHAPE:
        return Use.WHOLE
    if not isinstance(node.ctx, ast.Load):
        return Use.OTHER
    call = scene.parent(node)
    if isinstance(call, ast.Call) and call.func is node and is_written(node.attr):
        given = [*call.args, *(k.value for k in call.keywords)]
        numbers = all(is_all(scene.kind(a), "int", "float", "bool") for a in given)
        return Use.WHOLE if numbers else Use.OTHER
    if node.attr == "data":
        return use(scene, node)
    return Use.OTHER if _is_changed(scene, node.value) else Use.READ


def _passed(scene: Scene, call: ast.Call, node: ast.expr, keyword: str | None) -> Use:
    """Return what a call does with its argument."""
    if call.func is node:
        return Use.OTHER
    last = last_name(call.func)
    if last in _ASKING or (last.endswith("_") and not last.endswith("__")):
        return Use.WHOLE  # an initializer fills it, whatever its shape
    atoms = scene.kind(call.func)
    if atoms and all(a.name.startswith("torch.") for a in atoms):
        return Use.READ
    functions = [scene.inference.function_of(a.name) for a in atoms]
    for function in functions:
        if function is None or (keyword is None and node not in call.args):
            return Use.OTHER
        if summary(scene, function).writes:
            return Use.OTHER
    return Use.READ if functions else Use.OTHER


def _is_tied(scene: Scene, target: ast.AST) -> bool:
    """Return whether the weight of one such layer becomes that of another."""
    statement = scene.parent(target)
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Attribute) or not isinstance(value, ast.Attribute):
        return False
    sides = [(scene.module_classes(n.value), n.attr) for n in (target, value)]
    found = [layouts(scene, classes, attribute) for classes, attribute in sides]
    return found[0] == found[1] and len(found[0]) == 1


def _is_changed(scene: Scene, node: ast.expr) -> bool:
    """Return whether what shares memory with an expression is written to."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return not isinstance(parent.ctx, ast.Load) or _is_changed(scene, parent)
    if isinstance(parent, ast.Attribute):
        call = scene.parent(parent)
        called = isinstance(call, ast.Call) and call.func is parent
        if called and is_written(parent.attr):
            return True
        outer = call if called else parent
        return shares(parent.attr) and isinstance(outer, ast.expr) and _is_changed(scene, outer)
    if isinstance(parent, ast.Call) and node in parent.args:
        last = last_name(parent.func)
        return is_written(last)
    if isinstance(parent, ast.Assign) and parent.value is node:
        names = [t for t in parent.targets if isinstance(t, ast.Name)]
        function = scene.function(node)
        if len(names) < len(parent.targets) or function is None:
            return True
        loads = [n for n in function.nodes if isinstance(n, ast.Name) and n.id == names[0].id]
        stored = [n for n in loads if isinstance(scene.parent(n), ast.AugAssign)]
        reads = [n for n in loads if isinstance(n.ctx, ast.Load)]
        return bool(stored) or any(_is_changed(scene, n) for n in reads)
    return False
