"""In: a file whose program looks at gradients. Out: its backwards alone, and edits of the rest.

Where a program reads ``p.grad``, changes weights itself, has an optimizer of its own or spreads a
step over functions, gradients stay with the weights as in torch: each ``backward()`` becomes a
call of ``BackwardNet``, and what reads, writes, clears or applies gradients stays where it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from migrate.codegen.substitution import inside, piece
from migrate.records.outcomes import Edit, Piece, Site
from migrate.training import freezing
from migrate.training.groups import Group, Unclear
from migrate.training.lines import Parts, edit
from migrate.training.marks import (
    CLIP_NORM,
    CLIP_VALUE,
    NAMES,
    Act,
    Mark,
    View,
    all_marks,
    block_of,
    bodies,
    marks,
)

GRADIENT = "torch.Tensor.grad"
_CALLS = {
    Act.ZERO: "clear_gradients",
    Act.STEP: "apply_gradients",
    Act.CLIP_NORM: "clip_gradients",
    Act.CLIP_VALUE: "clip_gradient_values",
    Act.UNSCALE: "unscale_gradients",
    Act.UPDATE: "adjust_scale",
}
_OPTIMIZERS = {"torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"}
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_NOTHING = ("detach_", "requires_grad_")
_VALUES = ("copy_", "fill_")


def gradients(view: View) -> list[ast.Attribute]:
    """The places ``weight.grad`` of a file, in the order of the text."""
    found = [n for n in view.file.of(ast.Attribute) if n.attr == "grad" and _is_gradient(view, n)]
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


def _is_gradient(view: View, node: ast.Attribute) -> bool:
    call = view.file.parents.get(id(node))
    called = isinstance(call, ast.Call) and call.func is node
    return not called and not view.torch_names(node) - {GRADIENT} and (
        view.atoms(node.value) <= {"Tensor"}
    )  # fmt: skip


def asks(view: View) -> bool:
    """Whether a file reads gradients but to clip them, or clips where no backward stands."""
    for _, body in bodies(view):
        acts = {m.act for m in marks(view, body)}
        if acts & {Act.CLIP_NORM, Act.CLIP_VALUE} and Act.BACKWARD not in acts:
            return True
    clipped = {id(n) for m in all_marks(view) for n in ast.walk(m.statement)}
    if any(id(call) not in clipped for _, call in _clips(view)):
        return True
    return any(id(n) not in clipped for n in gradients(view))


def _clips(view: View) -> Iterator[tuple[Act, ast.Call]]:
    """Yield the calls that clip, wherever they stand: ``return clip_grad_norm_(...)``."""
    for call in view.file.of(ast.Call):
        names = view.torch_names(call.func)
        for act, known in ((Act.CLIP_NORM, CLIP_NORM), (Act.CLIP_VALUE, CLIP_VALUE)):
            if names and names <= set(known):
                yield act, call


def _closures(view: View) -> Iterator[ast.Call]:
    """Yield the calls ``optimizer.step(closure)``, wherever they stand."""
    for call, _ in view.file.calls.get("step", ()):
        given = [*call.args, *(k.value for k in call.keywords if k.arg == "closure")]
        alone = len(given) == 1 == len(call.args) + len(call.keywords)
        if not alone or isinstance(given[0], ast.Starred) or view.is_optimizer(given[0]):
            continue
        if isinstance(call.func, ast.Attribute) and view.is_optimizer(call.func.value):
            yield call


def within(view: View, items: Iterable[ast.stmt]) -> bool:
    """Whether statements look at gradients."""
    inside = {id(n) for s in items for n in ast.walk(s)}
    return any(id(n) in inside for n in gradients(view))


def alone(view: View, found: Sequence[Mark]) -> list[Group | Unclear]:
    """Return each backward of a function; those that share one forward are one.

    Without ``retain_graph`` nothing is left of a graph that a second backward could go through.
    """
    drafts: list[list[Mark]] = []
    last: Mark | None = None
    for mark in found:
        if mark.act is Act.BACKWARD:
            if last is not None and last.act is Act.BACKWARD and _are_one(view, last, mark):
                drafts[-1].append(mark)
            else:
                drafts.append([mark])
        last = mark
    return [_group(d) for d in drafts]


def _are_one(view: View, first: Mark, second: Mark) -> bool:
    block, _ = block_of(view, first.statement)
    if first.on != second.on or second.statement not in block:
        return False
    between = block.index(second.statement) - block.index(first.statement)
    return between == 1 or any(k.arg == "retain_graph" for k in first.call.keywords)


def _group(backwards: list[Mark]) -> Group | Unclear:
    for mark in backwards:
        given = {k.arg: k.value for k in mark.call.keywords}
        graph = given.get("create_graph")
        if graph is not None and not (isinstance(graph, ast.Constant) and not graph.value):
            return Unclear(mark, "it builds a graph of the gradient itself (create_graph)")
        if mark.call.args or set(given) - {"retain_graph", "create_graph"}:
            return Unclear(mark, "backward() is given a gradient or inputs")
    return Group(tuple(backwards), (), (), (), fused=False, by_hand=True)


def reason_against(view: View, every: Sequence[Mark]) -> Unclear | None:
    """What cannot be done with gradients that stay with the weights."""
    closures = {id(call) for call in _closures(view)}
    for mark in every:
        given = len(mark.call.args) + len(mark.call.keywords) - bool(mark.scaler)
        if mark.act is Act.UPDATE and given >= 0:
            return Unclear(mark, "update() is given a scale")
        if mark.act is Act.STEP and given and id(mark.call) not in closures:
            return Unclear(mark, "step() is given more than a closure")
    odd = next((n for n in gradients(view) if _is_odd(view, n)), None)
    if odd is not None and every:
        return Unclear(every[0], f"line {odd.lineno} changes a gradient in a way of its own")
    if any(_is_shared(view, node) for node in gradients(view)) and every:
        return Unclear(every[0], "several processes share its gradients by a call of its own")
    return None


def _is_shared(view: View, node: ast.AST) -> bool:
    """Return whether a gradient is an argument of ``dist.all_reduce(p.grad)``, which changes it."""
    call = view.file.parents.get(id(node))
    while isinstance(call, ast.Attribute):
        call = view.file.parents.get(id(call))
    names = view.torch_names(call.func) if isinstance(call, ast.Call) else set()
    return any(name.startswith("torch.distributed.") for name in names)


def _is_odd(view: View, node: ast.Attribute) -> bool:
    """A change of a gradient within an expression, or its deletion."""
    if isinstance(node.ctx, ast.Del):
        return True
    whole, around = _whole(view, node)
    if isinstance(around, ast.Attribute) and around.value is whole and around.attr.endswith("_"):
        return _written(view, node) is None
    return isinstance(node.ctx, ast.Store) and not isinstance(around, (ast.Assign, ast.AugAssign))


# -- edits --------------------------------------------------------------------------------------


def edits(view: View, every: Sequence[Mark], own: str) -> Iterator[Edit]:
    """Marks other than backwards, and gradients, in words of ``own``."""
    source = view.file.source
    closures = list(_closures(view))
    for call in closures:
        assert isinstance(call.func, ast.Attribute)
        closure = piece(source, call.args[0] if call.args else call.keywords[0].value)
        owner = piece(source, call.func.value)
        yield _edit(view, call, (f"{own}.step_by(", owner, ", ", closure, ")"))
    for mark in every:
        if mark.act is Act.BACKWARD or _is_clamp(mark) or mark.call in closures:
            continue
        scaled = mark.act is Act.STEP and mark.scaler
        name = f"{own}.{'apply_scaled_gradients' if scaled else _CALLS[mark.act]}"
        if mark.act in (Act.CLIP_NORM, Act.CLIP_VALUE):
            yield _edit(view, mark.call.func, (name,))
            continue
        assert isinstance(mark.call.func, ast.Attribute)
        owner = piece(source, mark.call.func.value)
        more = inside(source, mark.call)
        more = [", ", *more] if more else []
        yield _edit(view, mark.call, (f"{name}(", owner, *more, ")"))
    marked = {id(mark.call) for mark in every}
    for act, call in _clips(view):
        if id(call) not in marked:
            yield _edit(view, call.func, (f"{own}.{_CALLS[act]}",))
    for node in gradients(view):
        yield from _gradient(view, node, own)
    yield from _optimizers(view, own)
    if freezing.of(view).late:
        yield from _every_weight(view, own)


def _every_weight(view: View, own: str) -> Iterator[Edit]:
    """Optimizers hold frozen weights as well, where they may be freed later."""
    for call in view.file.of(ast.Call):
        named = next((k.value for k in call.keywords if k.arg == "params"), None)
        given = call.args[0] if call.args else named
        if given is None or isinstance(given, ast.Starred) or not freezing.is_built(view, call):
            continue
        parts = (f"{own}.every_weight(", piece(view.file.source, given), ")")
        yield _edit(view, given, parts)


def _optimizers(view: View, own: str) -> Iterator[Edit]:
    """Classes that derive from torch's Optimizer: base, groups, and the weights in these."""
    source = view.file.source
    for item in view.file.of(ast.ClassDef):
        bases = [b for b in item.bases if view.torch_names(b) & _OPTIMIZERS]
        yield from (_edit(view, base, (f"{own}.OptimizerWithStep",)) for base in bases)
        inside = [n for n in ast.walk(item) if bases and isinstance(n, ast.Subscript)]
        for node in inside:
            if isinstance(node.slice, ast.Constant) and node.slice.value == "params":
                held = piece(source, node.value)
                if isinstance(node.ctx, ast.Load):
                    yield _edit(view, node, (f"{own}.group_weights(", held, ")"))
    for place in view.file.of(ast.Attribute):
        if place.attr == "param_groups" and isinstance(place.ctx, ast.Load):
            classes = [a.name for a in view.kind(place.value) if a.kind == "Object"]
            if any(set(view.inference.torch_bases(c)) & _OPTIMIZERS for c in classes):
                yield _edit(view, place, (f"{own}.own_groups(", piece(source, place.value), ")"))


def _is_clamp(mark: Mark) -> bool:
    return isinstance(mark.call.func, ast.Attribute) and mark.call.func.attr == "clamp_"


def sites(view: View, every: Sequence[Mark]) -> list[Site]:
    """What the report calls a part of a training step."""
    source = view.file.source
    marked = [m for m in every if m.act is not Act.BACKWARD and not _is_clamp(m)]
    found = [source.site(NAMES[m.act], m.statement) for m in marked]
    return found + [source.site(GRADIENT, n) for n in gradients(view)]


def _gradient(view: View, node: ast.Attribute, own: str) -> Iterator[Edit]:
    source = view.file.source
    weight = piece(source, node.value)
    read: Parts = (f"{own}.gradient_of(", weight, ")")
    whole, around = _whole(view, node)
    written = _written(view, node)
    if isinstance(around, ast.AugAssign) and around.target is whole:
        value = (
            *read,
            f" {_SIGNS[type(around.op)]} ",
            piece(source, around.value),
        )
        yield _edit(view, around, (f"{own}.write_gradient(", weight, ", ", *value, ")"))
    elif isinstance(around, ast.Assign) and whole in around.targets:
        name = "keep_gradient" if whole is node else "write_gradient"
        given = piece(source, around.value)
        yield _edit(view, around, (f"{own}.{name}(", weight, ", ", given, ")"))
    elif written is not None:
        yield _edit(view, written, _value(view, written, weight, read, own))
    elif isinstance(around, ast.Delete) and around.targets == [node]:  # torch has None then
        yield _edit(view, around, (f"{own}.keep_gradient(", weight, ", None)"))
    elif isinstance(node.ctx, ast.Load):
        yield _edit(view, node, read)


def _value(view: View, call: ast.Call, weight: Piece, read: Parts, own: str) -> Parts:
    """``p.grad.mul_(0.5)`` writes what ``mul`` gives."""
    assert isinstance(call.func, ast.Attribute)
    method, source = call.func.attr, view.file.source
    if method in _NOTHING:
        return read
    head = (f"{own}.write_gradient(", weight, ", ")
    if method == "zero_":
        return (*head, "0)")
    if method in _VALUES:
        return (*head, piece(source, call.args[0]), ")")
    given = inside(source, call)
    return (*head, *read, f".{method.removesuffix('_')}(", *given, "))")


def _whole(view: View, node: ast.Attribute) -> tuple[ast.expr, ast.AST | None]:
    """``p.grad`` or ``p.grad.data``, and what stands around it."""
    around = view.file.parents.get(id(node))
    if isinstance(around, ast.Attribute) and around.attr == "data":
        return around, view.file.parents.get(id(around))
    return node, around


def _written(view: View, node: ast.Attribute) -> ast.Call | None:
    """The call of a method in place on a gradient, where it is a statement."""
    whole, method = _whole(view, node)
    if not isinstance(method, ast.Attribute) or method.value is not whole:
        return None
    call = view.file.parents.get(id(method))
    if not method.attr.endswith("_") or not isinstance(call, ast.Call) or call.func is not method:
        return None
    known = bool(view.inference.table.rows(f"torch.Tensor.{method.attr.removesuffix('_')}"))
    simple = method.attr in _NOTHING or method.attr == "zero_"
    simple = simple or (method.attr in _VALUES and len(call.args) == 1 and not call.keywords)
    statement = isinstance(view.file.parents.get(id(call)), ast.Expr)
    return call if statement and (simple or (known and method.attr not in _VALUES)) else None


def _edit(view: View, node: ast.AST, parts: Parts) -> Edit:
    return edit(view.file.source, view.file.source.span(node), parts)
