"""In: ``torch.no_grad`` and its kin. Out: code without them, results cut off from the gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.cfg import Role, Why
from migrate.analysis.passing import arguments
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import added, piece
from migrate.mapping.choice import Chosen
from migrate.records.outcomes import Edit, Outcome, Part, Refusal, Site, Wrap
from migrate.rules import data_attribute, decorators
from migrate.rules.alias_walk import summary
from migrate.rules.always_stopped import is_always_stopped
from migrate.rules.called_from import functions_of, in_forward
from migrate.rules.leaking import (
    asks_in_function,
    enters_quiet,
    handed_through,
    is_asked,
    leaks,
    loses_itself,
    refused,
    switched,
    switched_function,
)
from migrate.rules.own_values import (
    CASTS,
    evaluated,
    handed,
    is_computed,
    is_recorded,
    same_objects,
    takes_numbers,
    written_values,
)
from migrate.rules.registry import by_row, rewrites
from migrate.rules.stopped import (
    STOPPING,
    asks_device,
    cast_settings,
    lowers,
    quiet,
    switches,
)
from migrate.sites.buffer_gradients import carries
from migrate.sites.references import direct_name
from migrate.sites.scene import Scene
from migrate.syntax.lines import statements
from migrate.syntax.trees import values_of

_CUT, _CUT_ALL = "mindspore.ops.stop_gradient", "helpers.without_gradient"
_COLLECTING = frozenset("append extend insert add update appendleft setdefault".split())


@by_row("no_grad")
def no_grad(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Remove ``no_grad``, and cut what it computes off the gradient.

    Where that is not all that it does, it becomes PyNative's own switch for gradients, which graph
    mode refuses as a context and passes over as a decorator.
    """
    parent = scene.parent(call)
    if isinstance(parent, ast.withitem):
        statement = scene.parent(parent)
        if isinstance(statement, ast.With) and all(
            quiet(scene, item.context_expr) for item in statement.items
        ):
            if not leaks(scene, statement):
                return _unwrapped(scene, site, statement, chosen)
            if why := loses_itself(scene, statement):
                return refused(site, why)
    elif isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        name = quiet(scene, call)
        kept = switched_function(scene, site, call, name) if name else None
        return kept or decorators.dropped(scene, site, call, chosen.row)
    return switched(scene, site, call)


@rewrites()
def leaves(scene: Scene) -> Iterator[Edit]:
    """Cut what a forward makes a Parameter of off the gradient, as torch's Parameter is a leaf."""
    for call in scene.file.of(ast.Call):
        function, data = scene.function(call), next(iter(call.args), None)
        named = direct_name(scene, call.func) or ""
        if function is None or data is None or not named.endswith("nn.Parameter"):
            continue
        computed = not isinstance(data, ast.Starred) and in_forward(scene, function)
        if computed and carries(scene, data, function.node, frozenset()):
            text, root = scene.spelling.local(_CUT)
            parts = (f"{text}(", piece(scene.source, data), ")")
            site = scene.site("torch.nn.Parameter", data)
            yield Wrap(site, Outcome.CONVERTED, parts, site.name, frozenset((root,)))


@by_row("is_grad_enabled")
def is_grad_enabled(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Write True in a program that never switches gradients off; else ask PyNative's switch.

    In the forward of an ``autograd.Function`` it is False; what a Function may call is flagged.
    """
    place = site.at(scene.source.span(call))
    asking = asks_in_function(scene, call)
    if asking == "forward":
        note = "False: torch records nothing in the forward of a Function"
        return Edit(place, Outcome.CONVERTED, ("False",), chosen.row.key, note=note)
    if asking:
        why = "torch switches gradients off in a Function, and MindSpore does not"
        return Refusal(site, "LOP301", why, "write what it decides here")
    if scene.inference.program.mentions(b"use_reentrant=True"):
        why = "torch switches gradients off in a first pass of checkpoint"
        return Refusal(site, "LOP301", why, "write use_reentrant=False")
    if not switches(scene):
        row = chosen.row
        return Edit(place, Outcome.CONVERTED, ("True",), row.key, note=row.note)
    text, root = scene.spelling.local("helpers.is_grad_enabled")
    return Edit(place, Outcome.HELPER, (f"{text}()",), chosen.row.key, frozenset((root,)))


@by_row("autocast")
def autocast(
    scene: Scene, site: Site, call: ast.Call, receiver: ast.expr | None, chosen: Chosen
) -> Edit | Refusal:
    """Remove ``autocast`` where torch on a CPU computes in float32 as well; flag it elsewhere."""
    if lowers(call):
        return Refusal(
            site,
            "LOP105",
            "torch computes in bfloat16 here, for which MindSpore has no products on CPUs",
            "delete it and compute in float32",
        )
    if not asks_device(site.name, call):
        return no_grad(scene, site, call, receiver, chosen)
    parent = scene.parent(call)
    if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        why = "torch computes in bfloat16 where the device is a CPU"
        return Refusal(site, "LOP105", why, "delete it and compute in float32")
    device, enabled = cast_settings(call)
    name = "full_precision" if isinstance(parent, ast.Expr) else "without_autocast"
    text, root = scene.spelling.local(f"helpers.{name}")
    assert device is not None
    asked = ", " if name == "full_precision" else ", enabled="
    given = [
        piece(scene.source, device),
        *((asked, piece(scene.source, enabled)) if enabled else ()),
    ]
    place = site.at(scene.source.span(call))
    return Edit(place, Outcome.HELPER, (f"{text}(", *given, ")"), chosen.row.key,
                frozenset((root,)), note=chosen.row.note)  # fmt: skip


def _unwrapped(scene: Scene, site: Site, node: ast.With, chosen: Chosen) -> Edit:
    """Put the body of a context in its place."""
    place, parts = site.at(scene.source.span(node)), (statements(scene.source, node.body),)
    return Edit(place, Outcome.CONVERTED, parts, chosen.row.key, note=chosen.row.note)


@rewrites()
def contexts(scene: Scene) -> Iterator[Edit]:
    """Cut the results of a removed context off the gradient."""
    for node in scene.file.of(ast.With):
        names = [quiet(scene, item.context_expr) for item in node.items]
        if all(names):
            if leaks(scene, node):
                continue
            if set(names) & set(STOPPING) and _differentiated(scene, node):
                yield from _cut_held(scene, node)  # before what follows the block
                yield from _cut_names(scene, node)
        elif any(enters_quiet(scene, item) for item in node.items) and _differentiated(scene, node):
            yield from _cut_held(scene, node)
            yield from _cut_names(scene, node)
    for function in scene.file.of(ast.FunctionDef):
        stopping = any(_decorates(scene, d) in STOPPING for d in function.decorator_list)
        stopping = stopping and (
            not is_asked(scene, STOPPING[0], function)
            or data_attribute.compiled(scene, function.body[0])
        )
        stopping = stopping and not handed_through(scene, function)
        if stopping and _differentiated(scene, function.body[0]):
            yield from _cut_returns(scene, function)
            yield from _cut_held(scene, function)
        elif is_always_stopped(scene, scene.file.functions[id(function)]):
            yield from _cut_held(scene, function, False)


def _decorates(scene: Scene, node: ast.expr) -> str:
    """``@torch.no_grad()``, or ``@torch.no_grad`` without parentheses."""
    bare = "" if isinstance(node, ast.Call) else direct_name(scene, node) or ""
    return bare if bare in decorators.BARE else quiet(scene, node)


def _differentiated(scene: Scene, node: ast.AST) -> bool:
    """Whether the code may lie on the way of a gradient: in a function that sets nothing up."""
    function = scene.function(node)
    if function is None:
        return False
    name = function.name.lower()
    return not (name.startswith(("__init", "_init", "init", "reset", "load", "_load")))


def _cut_names(scene: Scene, node: ast.With) -> Iterator[Edit]:
    """After the block: ``x = ops.stop_gradient(x)`` for the Tensors that it bound.

    Where a jump or an exception may leave the block with one, or the block may leave the name as
    it was, that is cut where it is bound.
    """
    facts = scene.facts
    stores: dict[str, list[ast.Name]] = {}
    kept: set[str] = set()
    own = {id(item) for item in evaluated(node)}
    given = {n for item in ast.walk(node) if isinstance(item, ast.Nonlocal) for n in item.names}
    same, copied = same_objects(scene, node)
    kept |= copied  # another name has it, and that may hold what is not of the block as well
    for item in ast.walk(node):
        if not isinstance(item, ast.Name) or not isinstance(item.ctx, ast.Store):
            continue
        if id(item) not in own and item.id not in given:
            continue  # a variable of a function inside
        read = item.id in copied or facts.read_after(item.id, node)
        if read and id(item) in own and (cast := _cast_of(scene, item)):
            yield _cut(scene, node, scene.statement(item), item.id, cast)
            kept.add(item.id)
        elif id(item) in same:
            kept.add(item.id)  # no value is computed: it has the gradient that it had
        elif read and (is_all(scene.kind(item), "Tensor") or _may_carry(scene, item, node)):
            stores.setdefault(item.id, []).append(item)
    behind = []  # text at one place is kept in this order: what is deeper comes first
    for name, places in stores.items():
        inside = all(id(place) in own for place in places)
        early = name in kept or _leaves_early(scene, name, node)
        if inside and (early or _keeps_older(scene, name, node, places)):
            leaving = {id(p) for p in _left_with(scene, name, node)}
            for place in places:
                if isinstance(scene.statement(place), ast.For) and id(place) not in leaving:
                    places = [p for p in places if p is not place]
            for statement in dict.fromkeys(map(scene.statement, places)):
                if isinstance(statement, ast.For):
                    yield _cut_first(scene, statement, name)
                elif isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
                    yield _cut(scene, node, statement, name)
        elif not isinstance(node.body[-1], (ast.Return, ast.Raise)):
            behind.append(_cut(scene, node, node, name))
    yield from _cut_returns(scene, node)
    yield from behind


def _cast_of(scene: Scene, target: ast.Name) -> str:
    """Return the variable that ``y = x.float()`` takes another dtype of: it may be x itself."""
    item = scene.parent(target)
    if not isinstance(item, ast.Assign) or item.targets != [target]:
        return ""
    call = item.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    held = call.func.value
    named = call.func.attr in CASTS and isinstance(held, ast.Name) and held.id != target.id
    tensors = named and is_all(scene.kind(held), "Tensor") and is_all(scene.kind(target), "Tensor")
    return held.id if tensors and isinstance(held, ast.Name) else ""


def _cut(scene: Scene, block: ast.With, after: ast.stmt, name: str, cast: str = "") -> Edit:
    """``name = ops.stop_gradient(name)`` behind a statement of a block that moves left.

    ``cast``: the variable that it is itself where it has its dtype.
    """
    text, root = _cutting(scene, block, name)
    value = f"{cast} if {cast}.dtype == {name}.dtype else {text}({name})" if cast else ""
    made = f"{name} = {value or f'{text}({name})'}"
    cut = added(scene.source, scene.site("torch.no_grad", block), after, Part.BEHIND, made)
    return replace(cut, needs=frozenset((root,)))


def _cutting(scene: Scene, block: ast.AST, name: str) -> tuple[str, str]:
    """Return the function that cuts off what a block binds a name to, and what to import."""
    places = (n for n in evaluated(block) if isinstance(n, ast.Name) and n.id == name)
    stored = [n for n in places if isinstance(n.ctx, ast.Store)]
    known = all(is_all(scene.kind(n), "Tensor") for n in stored)
    return scene.spelling.local(_CUT if known else _CUT_ALL)


def _may_carry(
    scene: Scene, node: ast.expr, block: ast.AST, seen: frozenset[int] = frozenset()
) -> bool:
    """Return whether an expression, or a variable that is bound, may hold Tensors with a gradient,
    and nothing says what it is. ``seen``: bindings that other bindings of the block decide."""
    if id(node) in seen:
        return False
    seen |= {id(node)}
    rest = isinstance(node, ast.Name) and isinstance(scene.parent(node), ast.Starred)
    if "unknown" not in scene.kind_names(node) and not rest:  # a list of what nothing tells
        return False
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            names = (n for n in evaluated(block) if isinstance(n, ast.Name) and n.id == node.id)
            stores = [n for n in names if isinstance(n.ctx, ast.Store)]
            return any(_may_carry(scene, n, block, seen) for n in stores)
        part, unpacked = _bound_to(scene, node)
        if part is None or not unpacked:
            return part is not None and _may_carry(scene, part, block, seen)
        recorded = data_attribute.records(scene, scene.function(node))
        return recorded and carries(scene, part, block, frozenset())
    computes = isinstance(node, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript))
    recorded = computes and data_attribute.records(scene, scene.function(node))
    return recorded and carries(scene, node, block, frozenset())


def _bound_to(scene: Scene, target: ast.Name) -> tuple[ast.expr | None, bool]:
    """Return what an assignment binds a variable to, and whether that is unpacked before."""
    at: ast.AST = target
    item = scene.parent(target)
    places: list[tuple[int, int]] = []
    while isinstance(item, (ast.Tuple, ast.List, ast.Starred)):
        if not isinstance(item, ast.Starred):
            places.append((item.elts.index(at), len(item.elts)))  # type: ignore[arg-type]
        at, item = item, scene.parent(item)
    if not isinstance(item, (ast.Assign, ast.AugAssign)):
        return None, False
    value = item.value
    while places:
        index, count = places[-1]
        written = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        if len(written) != count or any(isinstance(e, ast.Starred) for e in written):
            return value, True
        value = written[index]
        places.pop()
    return value, False


def _cut_first(scene: Scene, header: ast.For, name: str) -> Edit:
    """``name = ops.stop_gradient(name)`` as the first statement of a loop that binds it."""
    first = header.body[0]
    text, root = scene.spelling.local("mindspore.ops.stop_gradient")
    site, line = scene.site("torch.no_grad", first), f"{name} = {text}({name})"
    cut = added(scene.source, site, first, Part.BEFORE, line)
    return replace(cut, needs=frozenset((root,)))


def _leaves_early(scene: Scene, name: str, node: ast.With) -> bool:
    """Whether a jump or an exception may leave a block with a value that is read there."""
    point = scene.facts.point(node)
    assert point is not None
    live = point[0].live
    return any(
        live.before(name, edge.target)
        for edge in point[0].graph.leaving(node)
        if edge.source.role is not Role.LEAVE or edge.why is Why.EXCEPTION
    )


def _keeps_older(scene: Scene, name: str, node: ast.With, places: list[ast.Name]) -> bool:
    """Whether a block may end with the value that a name had before it, gradient and all."""
    inside = {id(place) for place in places}
    return any(id(place) not in inside for place in _left_with(scene, name, node))


def _left_with(scene: Scene, name: str, node: ast.With) -> Iterator[ast.AST | None]:
    """Yield what a name may be bound by where a block ends; None where nothing binds it."""
    point = scene.facts.point(node)
    assert point is not None
    for edge in point[0].graph.leaving(node):
        if edge.source.role is Role.LEAVE and edge.why is not Why.EXCEPTION:
            reach = point[0].bindings.after(name, edge.source)
            yield from (b.place for b in reach.bindings)
            if reach.unbound:
                yield None


def _cut_returns(scene: Scene, block: ast.AST) -> Iterator[Edit]:
    """Cut off the Tensors that a block returns, but for what it was handed as it is."""
    for item in evaluated(block):
        if isinstance(item, ast.Return) and item.value is not None:
            if is_recorded(scene, item, block):
                continue
            values = values_of(item.value)
            for value in values:
                if not is_all(scene.kind(value), "Tensor"):
                    continue
                if not isinstance(value, ast.Name) and handed(scene, value):
                    yield from _cut_parts(scene, value, block)
                elif not isinstance(value, ast.Name) or is_computed(scene, value, block):
                    yield from _wrapped(scene, value, "{}(", ")")


def _wrapped(
    scene: Scene, value: ast.expr, before: str, after: str, by: str = _CUT
) -> Iterator[Edit]:
    text, root = scene.spelling.local(by)
    site = scene.site("torch.no_grad", value)
    parts = (before.format(text), piece(scene.source, value), after)
    yield Wrap(site, Outcome.CONVERTED, parts, needs=frozenset((root,)))


# -- what containers hold ------------------------------------------------------------------------


def _cut_held(scene: Scene, block: ast.AST, gives: bool = True) -> Iterator[Edit]:
    """Cut off what a block computes and puts into a list, a tuple, a dict or an object.

    An element that was there before the block has the gradient that it had. Not ``gives``: what it
    returns is cut off where that is kept.
    """
    if not data_attribute.records(scene, scene.function(next(_inside(block)))):
        return
    for item in evaluated(block):
        held: list[ast.expr] = []
        if is_recorded(scene, item, block):
            continue
        for value in written_values(scene, item):
            if carries(scene, value, block, frozenset()):
                known = is_all(scene.kind(value), "Tensor")
                yield from _wrapped(scene, value, "{}(", ")", _CUT if known else _CUT_ALL)
        if isinstance(item, ast.Assign):
            places = [t for target in item.targets for t in _places(target)]
            if not all(isinstance(t, ast.Name) for t in places):
                held = [] if all(takes_numbers(scene, t) for t in places) else [item.value]
            elif isinstance(item.value, (ast.IfExp, ast.BoolOp)) and handed(scene, item.value):
                held = [item.value]
            elif not is_all(scene.kind(item.value), "Tensor"):
                unpacks = len(places) > 1 or not isinstance(item.targets[0], ast.Name)
                behind = _may_carry(scene, item.value, block)  # cut off where the block ends
                held = [] if unpacks or behind else [item.value]
        elif isinstance(item, ast.AugAssign):
            held = [item.value] if is_all(scene.kind(item.value), "list", "tuple") else []
        elif isinstance(item, (ast.Yield, ast.YieldFrom)):
            held = [item.value] if item.value is not None else []
        elif isinstance(item, ast.Return) and item.value is not None and gives:
            parts = values_of(item.value)
            held = [p for p in parts if not is_all(scene.kind(p), "Tensor")]
        elif isinstance(item, ast.Call):
            given = [*item.args, *(k.value for k in item.keywords)]
            held = given if _collects(scene, item) else _kept(scene, item)
        for value in held:
            yield from _cut_parts(scene, value, block)


def _inside(block: ast.AST) -> Iterator[ast.AST]:
    yield from getattr(block, "body", [block])


def _places(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _places(part)
    else:
        yield target.value if isinstance(target, ast.Starred) else target


def _collects(scene: Scene, call: ast.Call) -> bool:
    """Return whether a call puts its arguments into a container."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in _COLLECTING:
        return False
    torchs = any(a.kind == "ref" and a.name.startswith("torch.") for a in scene.kind(func))
    return not torchs and "Tensor" not in scene.kind_names(func.value)


def _kept(scene: Scene, call: ast.Call) -> list[ast.expr]:
    """Return the arguments that a function of the program puts into another argument."""
    found: dict[int, ast.expr] = {}
    for atom in scene.kind(call.func):
        for function in functions_of(scene.inference, atom):
            kept = {name for _, _, name, _ in summary(scene, function).kept}
            bound = atom.kind != "function" and not function.decorated("staticmethod")
            for name, value in arguments(function, call, bound) if kept else ():
                if name in kept and value is not None:
                    found[id(value)] = value
    return [*found.values()]


def _cut_parts(scene: Scene, value: ast.expr, block: ast.AST) -> Iterator[Edit]:
    """Cut off the Tensors of a value that the block computes."""
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        for part in value.elts:
            yield from _cut_parts(scene, part, block)
    elif isinstance(value, ast.Dict):
        for part in value.values:
            yield from _cut_parts(scene, part, block)
    elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield from _cut_parts(scene, value.elt, block)
    elif isinstance(value, ast.DictComp):
        yield from _cut_parts(scene, value.value, block)
    elif isinstance(value, ast.IfExp):
        yield from _cut_parts(scene, value.body, block)
        yield from _cut_parts(scene, value.orelse, block)
    elif isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _cut_parts(scene, part, block)
    elif isinstance(value, ast.Call) and handed(scene, value):
        return
    elif is_computed(scene, value, block):
        kinds = scene.kind(value)
        tensors = all(is_all(i, "Tensor") for a in kinds for i in a.items)
        if is_all(kinds, "Tensor"):
            yield from _wrapped(scene, value, "{}(", ")")
        elif isinstance(value, ast.Call) and tensors and all(a.items for a in kinds):
            if is_all(kinds, "list"):
                yield from _wrapped(scene, value, "[{}(v) for v in ", "]")
            elif is_all(kinds, "tuple"):
                yield from _wrapped(scene, value, "tuple({}(v) for v in ", ")")
        elif _may_carry(scene, value, block):
            yield from _wrapped(scene, value, "{}(", ")", _CUT_ALL)
