"""Know which values a block under no_grad computes itself, and which it only hands on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.types.kinds import is_all
from migrate.rules.kept_memory import may_be_weight
from migrate.rules.stopped import QUIET, STOPPING, outwards, quiet
from migrate.rules.torch_sharing import is_view_name
from migrate.rules.written import written_by
from migrate.sites.buffer_gradients import CUTTING, is_data, is_parameter
from migrate.sites.scene import Scene
from migrate.syntax.trees import unpacked

# what has variables of its own
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp,
          ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip


HANDING = frozenset("contiguous cpu cuda real positive resolve_conj resolve_neg".split())


CASTS = frozenset("to type type_as float double half bfloat16".split())


CHOOSING = frozenset("max min next getattr get pop setdefault popleft".split())


def handed(scene: Scene, value: ast.expr) -> str:
    """Return the variable that a value may be itself, or "?" for what an object holds."""
    if isinstance(value, ast.IfExp):
        return handed(scene, value.body) or handed(scene, value.orelse)
    if isinstance(value, ast.BoolOp):
        return next(filter(None, (handed(scene, v) for v in value.values)), "")
    func = value.func if isinstance(value, ast.Call) else None
    name = getattr(func, "attr", getattr(func, "id", ""))
    if isinstance(value, ast.Call) and func is not None and name in CHOOSING:
        torchs = any(a.kind in ("ref", "method") and "torch." in a.name for a in scene.kind(func))
        return "" if torchs else "?"
    if isinstance(value, ast.Call) and isinstance(func, ast.Attribute) and name in HANDING:
        args = value.args
        if not value.keywords and len(args) < 2:
            return handed(scene, args[0] if args else func.value)
    if isinstance(value, (ast.Attribute, ast.Subscript)) and not isinstance(value.ctx, ast.Store):
        view = isinstance(value, ast.Attribute) and is_view_name(value.attr)
        return "" if view or is_split(scene, value.value) else "?"
    return value.id if isinstance(value, ast.Name) else ""


def same_objects(scene: Scene, block: ast.AST) -> tuple[set[int], set[str]]:
    """Return the names of a block that are bound to what another name holds: ``a, c = b, d``.

    With the names of the block's own values among those: these are cut off where they are bound.
    What a loop or a function inside binds cannot be: a copy of it counts as a value of its own.
    """
    given: dict[int, str] = {}
    bound: dict[str, list[int]] = {}
    cut: set[int] = set()
    for item in ast.walk(block):
        if isinstance(item, ast.Assign):
            for target in item.targets:
                for one, value in unpacked(target, item.value):
                    if isinstance(one, ast.Name) and (name := handed(scene, value)):
                        given[id(one)] = name
                cut |= {id(n) for n in ast.walk(target)}
        elif isinstance(item, (ast.AnnAssign, ast.AugAssign)):
            cut.add(id(item.target))
        elif isinstance(item, ast.For):
            cut |= {id(n) for n in ast.walk(item.target)}
            given |= {id(n): "?" for n, part in _rounds(item) if not is_split(scene, part)}
        elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            bound.setdefault(item.id, []).append(id(item))
            if is_recorded(scene, item, block):
                given[id(item)] = "?"
                cut.add(id(item))
    for entered in getattr(block, "items", ()):  # what a context gives is no value of the block
        for item in ast.walk(entered):
            given |= {id(item): "?"} if isinstance(item, ast.Name) else {}
            cut.add(id(item))
    loose = {name for name, places in bound.items() if not cut.issuperset(places)}
    given = {key: name for key, name in given.items() if name not in loose}
    own = {name for name, places in bound.items() if any(p not in given for p in places)}
    return set(given), own & set(given.values())


def written_values(scene: Scene, item: ast.AST) -> list[ast.expr]:
    """Return what a statement or call writes into a Tensor that is there, in its place.

    Torch writes the numbers alone where no gradient is recorded. A Parameter takes no more.
    """
    if isinstance(item, ast.Assign):
        places = [t for t in item.targets if isinstance(t, ast.Subscript)]
        tensors = [t for t in places if is_all(scene.kind(t.value), "Tensor")]
        return [item.value] if any(not is_weight(scene, t) for t in tensors) else []
    if isinstance(item, ast.AugAssign):
        held = isinstance(item.target, (ast.Attribute, ast.Subscript))
        may = {"Tensor", "unknown"} & scene.kind_names(item.value)
        return [item.value] if held and may and not is_weight(scene, item.target) else []
    place = written_by(scene, item) if isinstance(item, ast.Call) else None
    if place is None or not isinstance(item, ast.Call) or is_weight(scene, place):
        return []
    given = [*item.args, *(k.value for k in item.keywords if k.arg != "out")]
    return [v for v in given if v is not place and {"Tensor", "unknown"} & scene.kind_names(v)]


def takes_numbers(scene: Scene, place: ast.expr) -> bool:
    """Return whether a Parameter, or a part of a Tensor, takes the numbers of what it is set to."""
    if isinstance(place, ast.Attribute):
        return is_weight(scene, place)
    return isinstance(place, ast.Subscript) and is_all(scene.kind(place.value), "Tensor")


def is_weight(scene: Scene, place: ast.expr) -> bool:
    """Return whether a place is a Parameter or buffer of a Module, its memory, or a part of it."""
    while isinstance(place, (ast.Subscript, ast.Attribute, ast.Call)):
        if isinstance(place, ast.Attribute) and (
            place.attr == "grad" or is_data(scene, place) or is_parameter(scene, place)
        ):
            return True
        place = place.func if isinstance(place, ast.Call) else place.value
    return isinstance(place, ast.Name) and may_be_weight(scene, place)


def is_recorded(scene: Scene, node: ast.AST, block: ast.AST) -> bool:
    """Return whether gradients are on again where a node of a block is evaluated."""
    for around in outwards(scene.file, node):
        if around is block:
            return False
        if isinstance(around, ast.With):
            names = [quiet(scene, item.context_expr) for item in around.items]
            if set(names) & set(STOPPING):
                return False
            if set(names) & set(QUIET[4:8]):
                return True
    return False


def _rounds(loop: ast.For) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Yield the variables of a loop, each with what it takes an element of."""
    call = loop.iter
    given = call.args if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else []
    name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
    parts: list[tuple[ast.expr, ast.expr]] = [(loop.target, loop.iter)]
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    if name == "enumerate" and len(targets) == 2 and given:
        parts = [(targets[1], given[0])]
    elif name == "zip" and len(targets) == len(given):
        parts = list(zip(targets, given, strict=True))
    elif name in ("reversed", "iter", "list", "tuple") and given:
        parts = [(loop.target, given[0])]
    for target, part in parts:
        yield from ((n, part) for n in ast.walk(target) if isinstance(n, ast.Name))


_SPLITTING = frozenset("unbind chunk split tensor_split hsplit vsplit dsplit".split())


def is_split(scene: Scene, value: ast.expr) -> bool:
    """Return whether the elements of a value are parts of a Tensor, made when it is evaluated."""
    func = value.func if isinstance(value, ast.Call) else None
    held = func.value if isinstance(func, ast.Attribute) and func.attr in _SPLITTING else None
    torchs = held is not None and any(a.kind == "ref" for a in scene.kind(held))
    return torchs or is_all(scene.kind(held or value), "Tensor")


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is evaluated as part of a block or body: not what functions inside do later."""
    pending: list[ast.AST] = [node]
    while pending:
        current = pending.pop()
        yield current
        if current is node or not isinstance(current, _LATER):
            pending.extend(reversed(list(ast.iter_child_nodes(current))))


def is_computed(scene: Scene, value: ast.expr, block: ast.AST) -> bool:
    """Return whether an expression has a value of the block's own, which may have a gradient."""
    if isinstance(value, ast.Name):
        if any(value.id in _bound_by(scene, around) for around in outwards(scene.file, value)):
            return True
        same, _ = same_objects(scene, block)
        return any(
            isinstance(n, ast.Name) and n.id == value.id and isinstance(n.ctx, ast.Store)
            for n in evaluated(block)
            if id(n) not in same
        )
    if isinstance(value, ast.Call):
        name = getattr(value.func, "attr", getattr(value.func, "id", ""))
        return name not in CUTTING
    if isinstance(value, ast.Subscript):
        return is_split(scene, value.value)
    return isinstance(value, (ast.BinOp, ast.UnaryOp))


def _bound_by(scene: Scene, node: ast.AST) -> set[str]:
    """Return the variables of a comprehension that are parts of Tensors."""
    return {
        name.id
        for clause in getattr(node, "generators", ())
        if is_all(scene.kind(clause.iter), "Tensor")
        for name in ast.walk(clause.target)
        if isinstance(name, ast.Name)
    }
