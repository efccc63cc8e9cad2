"""In: ``x += y``, ``x[i] = v``, or a layer with ``inplace=True``. Out: code that says the same.

MindSpore binds the variable anew where torch changes the tensor: right where nobody else reads it.
A saved buffer of torch is the very tensor that is assigned; in MindSpore it is a Parameter that
takes the numbers, for all who hold it: nobody may hold the tensor before, or want the gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import is_all
from migrate.codegen.substitution import added, piece
from migrate.records.outcomes import Edit, Outcome, Part, Piece, Refusal, Site
from migrate.rules import data_attribute, views
from migrate.rules.alias_values import GATHERING
from migrate.rules.alias_walk import solved
from migrate.rules.alias_writes import through_data
from migrate.rules.buffers import SIGNS, loses_gradient
from migrate.rules.called_from import may_be_compiled
from migrate.rules.callers import (
    INTRICATE,
    PART,
    effect,
    fate,
    is_unfolded,
    optional,
    sized,
    stopped_calls,
)
from migrate.rules.graph.folded import is_own
from migrate.rules.inplace import is_closed_over, missed
from migrate.rules.items import set_anew
from migrate.rules.registry import decides, rewrites
from migrate.rules.stopped import is_stopped
from migrate.rules.stopped_calls import Missed
from migrate.rules.written import (
    Holder,
    Target,
    adds_elements,
    is_element,
    is_shared_array,
    may_be_tensor,
    target_of,
    unsure_item,
    written_array,
    written_by,
)
from migrate.sites.buffer_gradients import BUFFER, is_data
from migrate.sites.references import Form, in_place
from migrate.sites.scene import Scene

NOTHING: frozenset[str] = frozenset()
_TWICE = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield)


def unsure(scene: Scene) -> Iterator[ast.AugAssign | ast.Subscript | ast.Call]:
    """Yield writes into what may be a Tensor that somebody else holds, where nothing tells.

    Calls among them are flagged instead of the function they call, for a tensor that they pass.
    """
    yield from stopped_calls(scene)
    for node in scene.file.of(ast.AugAssign):
        if is_shared_array(scene, _owner(scene, node)):
            missed = fate(scene, node).missed is not None
        else:
            missed = _may_be_missed(scene, node)
        if missed or _is_sum(scene, node):
            yield node
    for call in scene.file.of(ast.Call):
        array = written_array(scene, call) is not None
        if (array or _changes_lent(scene, call)) and fate(scene, call).missed is not None:
            yield call
    for place in scene.file.of(ast.Subscript):
        item = scene.parent(place)
        set_alone = isinstance(place.ctx, ast.Store) and not isinstance(item, ast.AugAssign)
        if set_alone and is_shared_array(scene, place.value) and fate(scene, place).missed:
            yield place
            continue
        stored = isinstance(item, ast.Assign) and item.targets == [place]
        stored = stored and (through_data(scene, place) or is_stopped(scene, scene.file, place))
        if set_alone and unsure_item(scene, place) and fate(scene, place, sure=False).missed:
            yield place
            continue
        unknown = stored and may_be_tensor(scene.kind_names(place.value))
        if unknown and data_attribute.keeps_gradient(scene, place):
            yield place


def _is_sum(scene: Scene, node: ast.AugAssign) -> bool:
    """Return whether what may be Tensors is added to a number where graph mode may compile it.

    What begins as 0 is the first Tensor itself for the compiler, and the second is added into it.
    """
    kinds = scene.kind_names(node)
    counts = bool(kinds & {"int", "float"}) and may_be_tensor(kinds)
    if not counts or not _may_compile(scene, node):
        return False
    if isinstance(node.target, ast.Subscript):
        twice = any(isinstance(n, _TWICE) for n in ast.walk(node.target))
        plain = is_all(scene.kind(node.target.value), "list", "dict") and not kinds & GATHERING
        return plain and not twice
    if not isinstance(node.target, ast.Name):
        return False
    reach = scene.facts.reach_before(node.target.id, node)
    if reach.outside:
        return False
    around = [(scene.parent(b.place), b.place) for b in reach.bindings]
    return all(
        isinstance(item, ast.AugAssign)
        or (isinstance(place, ast.Name) and is_all(scene.kind(place), "int", "float"))
        for item, place in around
    )


def _may_compile(scene: Scene, node: ast.AST) -> bool:
    function = scene.function(node)
    return function is not None and (
        data_attribute.compiled(scene, node) or may_be_compiled(scene, function)
    )


def _changes_lent(scene: Scene, call: ast.Call) -> bool:
    """Return whether a layer or function in place gets a value without a name of its own, as in
    ``relu(x.view(-1))``: others may hold its memory.
    """
    given = call.args and isinstance(call.args[0], ast.Call)
    return bool(given and in_place(scene, call)) and written_by(scene, call) is call.args[0]


@rewrites()
def repairs(scene: Scene) -> Iterator[Edit]:
    """Yield what brings other names of a tensor up to date behind the writes to it."""
    for found in solved(scene):
        for by, names in found.repairs.values():
            if fate(scene, by).missed is None:
                site = scene.site("torch.Tensor.__setitem__", by)
                yield views.repaired(scene, site, scene.statement(by), names)


@rewrites()
def entered(scene: Scene) -> Iterator[Edit]:
    """Stop in front of a loop without a round, behind which a write reaches another name."""
    stops: dict[int, tuple[ast.For, ast.AST, str]] = {}
    for found in solved(scene):
        keys = found.seen.keys() | found.given.keys()
        for node in scene.file.nodes if keys else ():
            if id(node) in keys and isinstance(node, (ast.Call, ast.AugAssign, ast.Subscript)):
                sure = isinstance(node, ast.Call) or not unsure_item(scene, _changed(scene, node))
                for loop in fate(scene, node, sure).entered:
                    stops.setdefault(id(loop), (loop, node, found.seen.get(id(node), "")))
    for loop, node, held in stops.values():
        source, site = scene.source, scene.site("torch.Tensor.__setitem__", node)
        may = [one for one in sized(scene, loop.iter) if not _has_rounds(one)]
        asked = [("len(", piece(source, one), ") == 0") for one in may]
        parts = [part for number, one in enumerate(asked) for part in (" or " * bool(number), *one)]
        why = f"torch2ms INP203: without a round of the loop it changes {held} in place"
        stop = f":{source.newline}    raise NotImplementedError({why!r})"
        if parts:
            yield added(source, site, loop, Part.BEFORE, "if ", *parts, stop)


def _has_rounds(node: ast.expr) -> bool:
    """Return whether a loop goes through something at least once: ``range(2)``, ``(a, b)``."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(not isinstance(e, ast.Starred) for e in node.elts)
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "range":
        return False
    given = [a.value for a in node.args if isinstance(a, ast.Constant) and type(a.value) is int]
    return len(given) == len(node.args) and len(range(*given)) > 0


def _may_be_missed(scene: Scene, node: ast.AugAssign) -> bool:
    if not may_be_tensor(scene.kind_names(_owner(scene, node))) or adds_elements(scene, node):
        return False
    data = through_data(scene, node.target)
    quiet = data or is_stopped(scene, scene.file, node)
    if quiet and data_attribute.keeps_gradient(scene, node.target):
        return True
    if not data and not isinstance(node.target, (ast.Name, ast.Attribute)):
        if unsure_item(scene, node.target):
            return fate(scene, node, sure=False).missed is not None
        return is_element(scene, node.target) and fate(scene, node).missed is not None
    found = fate(scene, node)
    return found.missed is not None or (found.assigned and not data)


@rewrites()
def kept_parameters(scene: Scene) -> Iterator[Edit]:
    """Keep what a call gave for a parameter that is bound anew before a write asks for it."""
    done: set[tuple[int, str]] = set()
    some: tuple[ast.AugAssign | ast.Subscript, ...] = (
        *scene.file.of(ast.AugAssign),
        *scene.file.of(ast.Subscript),
    )
    for node in some:
        if not _is_write(scene, node):
            continue
        function = scene.function(node)
        target = node.target if isinstance(node, ast.AugAssign) else node.value
        if function is None or not isinstance(target, ast.Name):
            continue
        kinds = scene.kind_names(target)
        if "Tensor" not in kinds and not may_be_tensor(kinds):
            continue
        for name in optional(scene, node):
            kept = _kept_name(scene, node, name)
            if kept != name and (id(function), name) not in done:
                done.add((id(function), name))
                yield _noted(scene, function, f"{kept} = {name}")


def _noted(scene: Scene, function: Function, text: str) -> Edit:
    """Return an edit that puts a statement before the first one of a function."""
    body = function.node.body
    assert isinstance(body, list)
    documented = ast.get_docstring(function.node) is not None  # type: ignore[arg-type]
    first = body[1 if documented and len(body) > 1 else 0]
    site = scene.site("torch.Tensor.__iadd__", first)
    return added(scene.source, site, first, Part.BEFORE, text)


def _is_write(scene: Scene, node: ast.AST) -> bool:
    stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    return isinstance(scene.parent(node), ast.Assign) if stored else isinstance(node, ast.AugAssign)


def _kept_name(scene: Scene, node: ast.AST, name: str) -> str:
    """Return the name by which a write asks whether an argument was passed."""
    function = scene.function(node)
    nodes = function.nodes if function is not None else ()
    stored = any(
        isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in nodes
    )
    return f"{name}_given" if stored else name


def _owner(scene: Scene, node: ast.AugAssign | ast.Subscript) -> ast.expr:
    """Return what is a Tensor, if the statement changes one."""
    if isinstance(node, ast.AugAssign) and is_element(scene, node.target):
        return node.target
    place = node.target if isinstance(node, ast.AugAssign) else node
    return place.value if isinstance(place, ast.Subscript) else place


def _guarded(scene: Scene, node: ast.AST, refusal: Refusal) -> Refusal:
    """Return the refusal; where nothing tells a Tensor it is one for Tensors alone."""
    if not isinstance(node, (ast.AugAssign, ast.Subscript)):
        return refusal
    owner = _owner(scene, node)
    if not may_be_tensor(scene.kind_names(owner)) or any(
        isinstance(n, _TWICE) for n in ast.walk(owner)
    ):
        return refusal
    return replace(refusal, tensor=scene.source.span(owner))


@decides(Form.INPLACE)
def decide(
    scene: Scene, node: ast.Call | ast.AugAssign | ast.Subscript, name: str
) -> Edit | Refusal:
    """Keep an in-place write that nobody misses, or bind its name anew; flag it elsewhere."""
    site = scene.site(name, node)
    if isinstance(node, ast.Call) and (why := stopped_calls(scene).get(node)) is not None:
        steps = {INTRICATE: "make the call in a function of its own",
                 PART: "pass a copy, and assign it to the part"}  # fmt: skip
        if why in steps:
            return Refusal(site, why.code, why.by, steps[why])
        if why.code == "INP204":
            return Refusal(site, why.code, why.by, "pass x.detach(), and write what it becomes")
        lent = f"what is passed is changed in place: {why.by}"
        return Refusal(site, why.code, lent, "pass a copy, and bind the name to what comes back")
    expr = _changed(scene, node)
    sure = isinstance(node, ast.Call) or not unsure_item(scene, expr)
    found, target = fate(scene, node, sure), target_of(scene, expr)
    if found.missed is not None:
        if not isinstance(node, ast.Call) and is_shared_array(scene, _owner(scene, node)):
            return missed(site, expr, found.missed)
        refusal = missed(site, expr, found.missed)
        if names := optional(scene, node):
            kept = {_kept_name(scene, node, name): none for name, none in names.items()}
            given = tuple(name for name, none in kept.items() if none)
            return replace(refusal, given=given, tensors=tuple(n for n in kept if n not in given))
        return _guarded(scene, node, refusal)
    quiet = is_stopped(scene, scene.file, node)
    if (quiet or through_data(scene, expr)) and data_attribute.keeps_gradient(scene, expr):
        return _guarded(scene, node, data_attribute.straight_through(site, expr))
    unsure = isinstance(node, ast.AugAssign) and may_be_tensor(scene.kind_names(node.target))
    if found.assigned and unsure and isinstance(expr, ast.Name):
        return _guarded(scene, node, missed(site, expr, Missed("INP206", "the caller's tensor")))
    if is_closed_over(scene, target):
        why = Missed("INP206", "a variable of an outer function")
        return missed(site, expr, why)
    if target.holder is Holder.VIEW:
        value = _value(scene, node)
        return views.changed(scene, site, target.expr, value, NOTHING, found.assigned, True)
    if isinstance(node, ast.Subscript):
        return _set(scene, site, node) or _kept(site)
    if isinstance(node, ast.AugAssign):
        if is_data(scene, node.target):
            return _augmented(scene, site, node)
        if _adds_apart(scene, node, found.assigned):
            if any(isinstance(n, _TWICE) for n in ast.walk(node.target)):
                return missed(site, expr, Missed("INP203", "its index would be computed twice"))
            return _unfolded(scene, site, node)
        if isinstance(node.target, ast.Subscript) and target.holder is not Holder.ELEMENT:
            sign, added = f"{SIGNS[type(node.op)]}=", piece(scene.source, node.value)
            return set_anew(scene, site, node.target, sign, (added,), NOTHING) or _kept(site)
        whole = isinstance(node.target, ast.Name) and target.holder is Holder.NAME
        element = target.holder is Holder.ELEMENT
        if found.assigned and (element or data_attribute.moves_weight(scene, node)):
            if any(isinstance(n, _TWICE) for n in ast.walk(node.target)):
                why = Missed("INP203", "its index would be computed twice")
                return missed(site, expr, why)
            return _augmented(scene, site, node)
        if not (found.assigned and whole):
            return _kept(site)
        return _augmented(scene, site, node, found.lent)
    if found.assigned:
        return missed(site, expr, Missed("INP206", "the caller's tensor"))
    if written_by(scene, node) is None:  # the first layer of a Sequential
        return _led(scene, site, node) if found.renewed else _kept(site)
    return _layer(scene, site, node, target, found.renewed)


def _value(scene: Scene, node: ast.Call | ast.AugAssign | ast.Subscript) -> views.Parts:
    """Return what the place gets that a statement changes."""
    if isinstance(node, ast.AugAssign):
        held, added = piece(scene.source, node.target), piece(scene.source, node.value)
        return (held, f" {SIGNS[type(node.op)]} ", added)
    item = scene.parent(node)
    assert isinstance(item, ast.Assign)
    return (piece(scene.source, item.value),)


def _set(scene: Scene, site: Site, node: ast.Subscript) -> Edit | None:
    """``x[i] = v`` in another form, where it has to have one."""
    item = scene.parent(node)
    if not isinstance(item, ast.Assign):
        return None
    return set_anew(scene, site, node, "=", (piece(scene.source, item.value),), NOTHING)


def _changed(scene: Scene, node: ast.Call | ast.AugAssign | ast.Subscript) -> ast.expr:
    if isinstance(node, ast.AugAssign):
        return node.target
    if not isinstance(node, ast.Call):
        return node
    return written_array(scene, node) or node.args[0]


def _kept(site: Site) -> Edit:
    return Edit(site, Outcome.KEPT, None)


def _augmented(scene: Scene, site: Site, node: ast.AugAssign, lent: bool = False) -> Edit:
    """Somebody else holds the object: ``assign(p, p + y)`` changes it for everyone.

    So does ``p.data += y``, which binds no name.
    """
    text, root = scene.spelling.local("helpers.change_given" if lent else "helpers.assign")
    held = piece(scene.source, node.target)
    if is_data(scene, node.target):
        assert isinstance(node.target, ast.Attribute)
        whole = piece(scene.source, node.target.value)
        held = whole if data_attribute.compiled(scene, node) else held
        value = (held, f" {SIGNS[type(node.op)]} ", piece(scene.source, node.value))
        parts: tuple[str | Piece, ...] = (f"{text}(", whole, ", ", *value, ")")
        return Edit(site, Outcome.HELPER, parts, site.name, frozenset((root,)))
    added = piece(scene.source, node.value)
    # a sum that starts as the number 0 is bound to the first Tensor that is added
    if isinstance(node.target, ast.Subscript):
        sure = is_all(scene.kind(node), "Tensor")  # what it holds before
    else:
        sure = _is_always_tensor(scene, node.target)
    again: tuple[str | Piece, ...] = () if sure else (held, " = ")
    parts = (*again, f"{text}(", held, ", ", held, f" {SIGNS[type(node.op)]} ", added, ")")
    return Edit(site, Outcome.HELPER, parts, site.name, frozenset((root,)))


def _adds_apart(scene: Scene, node: ast.AugAssign, assigned: bool) -> bool:
    """Return whether graph mode must not add in place.

    It forgets in the gradient what is set in the tensor later; the memory may be another's.
    """
    if not _may_compile(scene, node):
        return False
    if is_unfolded(scene, node):
        return True
    whole = isinstance(node.target, ast.Name) or is_element(scene, node.target)
    kinds = scene.kind_names(node) | scene.kind_names(node.target)
    counts = bool(kinds & {"int", "float"}) and may_be_tensor(kinds)  # a sum that starts as 0
    tensor = whole and (counts or "Tensor" in scene.kind_names(node))
    return tensor and not assigned and not is_own(scene, node.target)


def _unfolded(scene: Scene, site: Site, node: ast.AugAssign) -> Edit:
    """``x += y`` is ``x = x + y``."""
    held = piece(scene.source, node.target)
    added = piece(scene.source, node.value)
    parts = (held, " = ", held, f" {SIGNS[type(node.op)]} ", added)
    return Edit(site, Outcome.CONVERTED, parts, site.name)


def _is_always_tensor(scene: Scene, target: ast.expr) -> bool:
    """Whether everything that binds the name binds it to a Tensor."""
    function, name = scene.function(target), getattr(target, "id", "")
    bound = [
        node
        for node in (ast.walk(function.node) if function is not None else scene.file.nodes)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        if not isinstance(scene.parent(node), ast.AugAssign)
    ]
    added_to = scene.parent(target)  # its kind is what the name holds before
    known = added_to is not None and is_all(scene.kind(added_to), "Tensor")
    return known and all(is_all(scene.kind(node), "Tensor") for node in bound)


def _led(scene: Scene, site: Site, node: ast.Call) -> Edit:
    """``x + self.block(x)``, where the block begins with a ReLU that works in place."""
    name = node.args[0]
    assert isinstance(name, ast.Name)
    parts = (f"{name.id} = ", piece(scene.source, node.func), f"[0]({name.id})")
    before = added(scene.source, site, scene.statement(node), Part.BEFORE, *parts)
    return replace(before, row=site.name)


def _layer(
    scene: Scene, site: Site, node: ast.Call, target: Target, renewed: bool
) -> Edit | Refusal:
    """``relu(x)`` with ``inplace=True`` is ``x = relu(x)`` where ``x`` is read again."""
    statement = scene.parent(node)
    alone = isinstance(statement, ast.Expr)
    if target.holder is not Holder.NAME and alone:
        why = Missed("INP203", "its value is thrown away")
        return missed(site, node.args[0], why)
    if not alone and not renewed:
        return _kept(site)
    assert isinstance(statement, (ast.Expr, ast.Assign))
    return added(scene.source, site, statement, Part.TARGET, target.name)


@decides(Form.LATE, names=(BUFFER,))
def buffer_store(scene: Scene, node: ast.Attribute | ast.Call, name: str) -> Edit | Refusal:
    """Keep a buffer that is bound anew where nobody can tell; flag it elsewhere."""
    site, function = scene.site(BUFFER, node), scene.function(node)
    text = ast.unparse(node)
    held = effect(scene, function, id(node), "rebound")
    if held:
        return Refusal(
            site,
            "INP203",
            f"{text} is bound anew, and {held} holds the tensor before: a buffer keeps its place",
            f"keep {text}.clone() where the old values are meant",
        )
    lost = effect(scene, function, id(node), "lost")
    if lost:
        return loses_gradient(site, text, f"{lost} reads it behind that")
    return Edit(site, Outcome.KEPT, None)
