"""Convert attributes of a Module (forward, parameters, settings) and ``for m in net.modules()``.

The weight of a convolution over one axis has an axis more in MindSpore. Code that computes with it
gets torch's shape, code that fills it as a whole gets the Parameter, any other use is flagged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import Renderer, piece
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Wrap
from migrate.rules.alias_walk import summary
from migrate.rules.called_from import functions_of
from migrate.rules.calling import removed
from migrate.rules.registry import decides, rewrites
from migrate.rules.torch_sharing import is_written, shares
from migrate.sites.late_writes import as_call
from migrate.sites.module_members import ENTRY, RENAMED, SETTINGS
from migrate.sites.references import Form, direct_name
from migrate.sites.scene import Scene
from migrate.sites.unknown_receivers import FORWARD, SOME_FORWARD
from migrate.syntax.trees import is_none, last_name

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


def laid_out(scene: Scene, node: ast.Attribute, name: str, found: frozenset[str]) -> Edit | Refusal:
    """Give ``conv.weight`` torch's shape where it is read; ``found``: the changes of shape."""
    site, how = scene.site(name, node), use(scene, node)
    if how is Use.WHOLE:
        return Edit(site, Outcome.KEPT, None, name)
    layout = next(filter(None, sorted(found)))
    given = _given_whole(scene, node) if how is Use.OTHER and len(found) == 1 else None
    if given is not None and not _is_named(scene, node) and layout.startswith("unsqueeze("):
        return _given(scene, node, name, given, layout)
    added = _added_whole(scene, node) if how is Use.OTHER and len(found) == 1 else None
    if added is not None and not _is_named(scene, node) and layout == "unsqueeze(2)":
        text, root = scene.spelling.local("helpers.beside_axis")
        parts: tuple[str | Piece, ...] = (f"{text}(", piece(scene.source, added), ")")
        needs = frozenset((root,))
        return Wrap(scene.site(name, added), Outcome.HELPER, parts, needs=needs)
    if how is Use.OTHER or not layout.startswith("unsqueeze("):
        why = f"the Cell keeps {node.attr} in another shape ({layout})"
        return Refusal(site, "API110", why, "compute with its values where the Cell is")
    if len(found) > 1:
        return by_helper(scene, node, name)
    squeezed = (piece(scene.source, node), "." + layout.removeprefix("un"))
    return Edit(site, Outcome.CONVERTED, squeezed, name.rpartition(".")[0])


def _added_whole(scene: Scene, node: ast.Attribute) -> ast.expr | None:
    """Return what ``conv.weight.data /= scale`` computes the whole weight with."""
    data = scene.parent(node)
    item = scene.parent(data) if isinstance(data, ast.Attribute) and data.attr == "data" else None
    return item.value if isinstance(item, ast.AugAssign) and item.target is data else None


def _given_whole(scene: Scene, node: ast.Attribute) -> ast.expr | None:
    """Return the value that a statement gives to the whole weight: ``conv.weight.data = w``,
    ``conv.weight.data.copy_(w)``, ``conv.weight = nn.Parameter(w)``."""
    target: ast.AST = node
    around = scene.parent(node)
    if isinstance(around, ast.Attribute) and around.attr == "data":
        target, around = around, scene.parent(around)
    if isinstance(around, ast.Assign):
        value = around.value if around.targets == [target] else None
        if target is not node or not isinstance(value, ast.Call) or len(value.args) != 1:
            return value if target is not node else None
        return value.args[0] if direct_name(scene, value.func) == "torch.nn.Parameter" else None
    copies = isinstance(around, ast.Attribute) and around.attr == "copy_"
    call = scene.parent(around) if copies and around is not None else None
    if isinstance(call, ast.Call) and call.func is around and not call.keywords:
        return call.args[0] if len(call.args) == 1 else None
    return None


def _is_named(scene: Scene, node: ast.Attribute) -> bool:
    """Return whether a function gives the weight a name: that is another shape of it here."""
    function = scene.function(node)
    nodes = function.nodes if function is not None else scene.file.nodes
    values = [n.value for n in nodes if isinstance(n, ast.Assign)]
    wanted = ast.unparse(node)
    return any(isinstance(v, ast.Attribute) and ast.unparse(v) == wanted for v in values)


def _given(scene: Scene, node: ast.Attribute, name: str, value: ast.expr, layout: str) -> Edit:
    """Give a value that is put into a weight its shape; that of a layer of the same kind has it."""
    weight = value.value if isinstance(value, ast.Attribute) and value.attr == "data" else value
    whole = isinstance(weight, ast.Attribute) and use(scene, weight) is Use.WHOLE
    if whole and isinstance(weight, ast.Attribute):
        classes = scene.module_classes(weight.value)
        if layouts(scene, classes, weight.attr) == {layout}:
            return Edit(scene.site(name, node), Outcome.KEPT, None, name)
    parts = (piece(scene.source, value), f".{layout}")
    return Wrap(scene.site(name, value), Outcome.CONVERTED, parts, name.rpartition(".")[0])


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
        return Use.WHOLE if _takes_number(scene, node) else Use.OTHER
    call = scene.parent(node)
    if isinstance(call, ast.Call) and call.func is node and is_written(node.attr):
        given = [*call.args, *(k.value for k in call.keywords)]
        numbers = all(is_all(scene.kind(a), "int", "float", "bool") for a in given)
        return Use.WHOLE if numbers else Use.OTHER
    if node.attr == "data":
        return use(scene, node)
    return Use.OTHER if _is_changed(scene, node.value) else Use.READ


def _takes_number(scene: Scene, node: ast.Attribute) -> bool:
    """``conv.weight.data *= 2``: whatever the shape is."""
    item = scene.parent(node)
    added = item.value if isinstance(item, ast.AugAssign) and item.target is node else None
    return (
        added is not None
        and node.attr == "data"
        and (is_all(scene.kind(added), "int", "float", "bool"))
    )


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


def _is_changed(scene: Scene, node: ast.expr, asked: frozenset[str] = frozenset()) -> bool:
    """Return whether what shares memory with an expression is written to; ``asked``: names whose
    reads are looked at already (``M = M.T`` leads back to M)."""
    parent = scene.parent(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return not isinstance(parent.ctx, ast.Load) or _is_changed(scene, parent, asked)
    if isinstance(parent, ast.Attribute):
        call = scene.parent(parent)
        called = isinstance(call, ast.Call) and call.func is parent
        if called and is_written(parent.attr):
            return True
        outer = call if called else parent
        if not shares(parent.attr) or not isinstance(outer, ast.expr):
            return False
        return _is_changed(scene, outer, asked)
    if isinstance(parent, ast.Call) and node in parent.args:
        last = last_name(parent.func)
        return is_written(last)
    if isinstance(parent, ast.Assign) and parent.value is node:
        names = [t for t in parent.targets if isinstance(t, ast.Name)]
        function = scene.function(node)
        if len(names) < len(parent.targets) or function is None:
            return True
        return any(_is_written_under(scene, function, n.id, asked) for n in names)
    return False


def _is_written_under(scene: Scene, function: Function, name: str, asked: frozenset[str]) -> bool:
    """Return whether a function writes to what one of its names holds."""
    if name in asked:
        return False
    uses = [n for n in function.nodes if isinstance(n, ast.Name) and n.id == name]
    if any(isinstance(scene.parent(n), ast.AugAssign) for n in uses):
        return True
    reads = [n for n in uses if isinstance(n.ctx, ast.Load)]
    return any(_is_changed(scene, n, asked | {name}) for n in reads)


def _applies(scene: Scene, node: ast.Attribute, name: str) -> bool:
    """Whether this file decides: forward, and what a class row has in ``weights``, ``attrs``."""
    owner, _, last = name.rpartition(".")
    parts = RENAMED | SETTINGS
    if name in (FORWARD, SOME_FORWARD, ENTRY) or (owner == "torch.nn.Module" and last in parts):
        return True
    rows = scene.table.rows(owner)
    return any(last in row.weights or last in row.attrs or last in row.layout for row in rows)


@decides(Form.MEMBER, before=("members",))
def decide(scene: Scene, node: ast.Attribute, name: str) -> Edit | Refusal | None:
    """Rename members of layers: ``m.forward`` to ``construct``, ``bn.weight`` to ``gamma``."""
    if not _applies(scene, node, name):
        return None
    site = scene.site(name, node)
    owner, _, last = name.rpartition(".")
    if name == SOME_FORWARD:
        return _by_helper(scene, node, name) or Refusal(
            site, "API109", "nothing tells whether it is a Module", "test with isinstance"
        )
    if last == "forward":
        return _renamed(scene, node, name, "construct")
    if name == ENTRY:  # a ModuleDict is a dict to graph mode, which has no attributes
        if not isinstance(node.ctx, ast.Load):
            return Edit(site, Outcome.KEPT, None)
        parts = (piece(scene.source, node.value), f'["{node.attr}"]')
        return Edit(site, Outcome.CONVERTED, parts)
    classes = scene.module_classes(node.value)
    if owner == "torch.nn.Module":
        if made := _by_helper(scene, node, name):
            return made
        why = (
            f"nothing tells which Module it is, and some Cells name {last} "
            "otherwise (gamma, beta, embedding_table)"
        )
        reads = isinstance(node.ctx, ast.Load)  # a Cell without it fails by itself
        return Refusal(site, "API109", why, "test with isinstance", keep=reads)
    known = [c for c in classes if c not in ("", "torch.nn.Module")]
    shapes = layouts(scene, tuple(known) or (owner,), last)
    if any(shapes) and scene.target == "portable":
        return laid_out(scene, node, name, shapes)
    targets = {_target(scene, c, last) for c in known or (owner,)}
    if len(targets) != 1:
        if last in RENAMED and (made := _by_helper(scene, node, name)):
            return made
        return Refusal(
            site,
            "API109",
            f"{last} has different names in the Cells it may belong to",
            "tell the classes apart",
            keep=isinstance(node.ctx, ast.Load),
        )
    target = targets.pop()
    if not target and last == "num_batches_tracked" and isinstance(node.ctx, ast.Load):
        target = "helpers.batches_tracked(self)"
    if not target:
        return Refusal(site, "API110", "the Cell has no such attribute", "keep it yourself")
    if target.isidentifier():
        return _renamed(scene, node, name, target)
    renderer = Renderer(scene.source, scene.spelling, scene.table, None, node.value)
    rendering = renderer.render(target)
    helper = any(n.startswith("helpers.") for n in rendering.needs)
    outcome = Outcome.HELPER if helper else Outcome.CONVERTED
    return Edit(site, outcome, rendering.parts, owner, rendering.needs)


def _by_helper(scene: Scene, node: ast.Attribute, name: str) -> Edit | None:
    """``m.weight`` of one of several layers: a helper looks what the Cell calls it; None for a
    statement that does more than giving it one value."""
    if not isinstance(node.ctx, ast.Load):
        return as_call(scene, node, name, "helpers.give_part")
    if node.attr == "weight" and use(scene, node) is Use.READ:
        return by_helper(scene, node, name)
    text, root = scene.spelling.local("helpers.layer_part")
    parts = (f"{text}(", piece(scene.source, node.value), f', "{node.attr}")')
    return Edit(scene.site(name, node), Outcome.HELPER, parts, "", frozenset((root,)))


def _target(scene: Scene, owner: str, attribute: str) -> str:
    for row in scene.table.rows(owner):
        if attribute in row.weights:
            return row.weights[attribute]
        if attribute in row.attrs:
            return row.attrs[attribute]
    return attribute


def _renamed(scene: Scene, node: ast.Attribute, name: str, target: str) -> Edit:
    """Only the attribute's name changes; the text around it stays."""
    site = scene.site(name, node)
    if node.attr == target:
        return Edit(site, Outcome.KEPT, None, name)
    place = site.at(scene.source.name_span(node))
    return Edit(place, Outcome.CONVERTED, (target,), name.rpartition(".")[0])


NAME = "torch.nn.Module.modules"


@decides(Form.MEMBER, names=(NAME,), before=("modules.decide",))
def over_modules(scene: Scene, node: ast.Attribute, name: str) -> Edit | None:
    """Write ``for _, m in net.cells_and_names()`` for a loop over ``net.modules()``."""
    call = scene.parent(node)
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    loop = scene.parent(call)
    if not isinstance(loop, (ast.For, ast.comprehension)) or loop.iter is not call:
        return None
    if not isinstance(loop.target, ast.Name) or _reads_underscore(scene):
        return None
    source = scene.source
    site, target = scene.site(name, node), source.span(loop.target)
    pair = Edit(site.at(target), Outcome.CONVERTED, ("_, ", Piece(target)))
    parts = (piece(source, node.value), ".cells_and_names()")
    return Edit(site.at(source.span(call)), Outcome.CONVERTED, parts, NAME, also=(pair,))


def _reads_underscore(scene: Scene) -> bool:
    return "_" in scene.file.loads


@rewrites()
def inputs(scene: Scene) -> Iterator[Edit]:
    """Yield ``fc(x)`` for ``fc(input=x)`` and ``loss(x, y)`` for ``loss(input=x, target=y)``: Cells
    call these otherwise."""
    for call in scene.file.of(ast.Call) if b"input=" in scene.source.data else ():
        named = not call.args and call.keywords and call.keywords[0].arg == "input"
        atoms = scene.kind(call.func) if named else frozenset()
        layers = [a for a in atoms if a.kind == "Module" and a.name.startswith("torch.nn.")]
        if not layers or len(layers) < len(atoms):
            continue
        for keyword, name in zip(call.keywords, ("input", "target"), strict=False):
            if keyword.arg != name:
                break
            site = scene.site("torch.nn.Module.__call__", keyword)
            yield Edit(site, Outcome.CONVERTED, (piece(scene.source, keyword.value),))


_BACKWARD = tuple(
    f"torch.nn.Module.register_{kind}"
    for kind in ("backward_hook", "full_backward_hook", "full_backward_pre_hook")
)


@decides(Form.MEMBER, names=_BACKWARD, before=("members", "modules.decide"))
def idle_hook(scene: Scene, node: ast.Attribute, name: str) -> Edit | None:
    """Leave out a hook of the backward pass that computes local values and gives none back."""
    call = scene.parent(node)
    statement = scene.parent(call) if isinstance(call, ast.Call) and call.func is node else None
    if not isinstance(call, ast.Call) or not isinstance(statement, ast.Expr):
        return None
    atoms = scene.kind(call.args[0]) if len(call.args) == 1 else frozenset()
    hooks = [f for atom in atoms for f in functions_of(scene.inference, atom)]
    if not hooks or not all(map(_is_idle, hooks)):
        return None
    row = scene.table.rows(name)[0]
    edit = removed(scene, scene.site(name, node), statement, row)
    return replace(edit, note="the hook has no effect")


def _is_idle(function: Function) -> bool:
    """Return whether a function binds names of its own alone, by nothing that acts."""
    body = function.node.body if isinstance(function.node.body, list) else []
    for item in body:
        value = getattr(item, "value", None)
        named = isinstance(item, ast.Assign) and all(isinstance(t, ast.Name) for t in item.targets)
        told = isinstance(item, (ast.Pass, ast.Return)) or isinstance(value, ast.Constant)
        gives = isinstance(item, ast.Return) and value is not None and not is_none(value)
        if gives or not (named or told):
            return False
        calls = (n for n in ast.walk(item) if isinstance(n, ast.Call))
        if any(getattr(c.func, "id", "") not in ("range", "len", "tuple", "list") for c in calls):
            return False
    return bool(body) and not function.globals
