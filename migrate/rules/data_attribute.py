"""Decide ``x.data``: the Tensor itself where it is written, a value without gradient where read.

Torch's ``x.data`` shares the memory of ``x`` and is cut off from the gradient; so is MindSpore's in
PyNative. In graph mode ``.data`` of a Parameter that the same construct assigns gives wrong
gradients. What is written through ``.data`` of an intermediate is flagged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from migrate.analysis.program import Function
from migrate.analysis.types.kinds import is_all
from migrate.analysis.types.named import member_name
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.rules.buffers import evaluated_behind
from migrate.rules.called_from import (
    call_sites,
    in_forward,
    in_module_class,
    passed,
    scene_of,
)
from migrate.rules.kept_memory import (
    is_lent,
    may_be_weight,
    names_of,
    receives_buffer,
    stores_data,
)
from migrate.rules.stopped import is_stopped
from migrate.rules.stopped_calls import Missed, stop
from migrate.rules.torch_sharing import METADATA, shares
from migrate.rules.written import Holder, is_chain, target_of, written_by
from migrate.sites.buffer_gradients import carries, is_buffer, is_data, is_fresh, is_parameter
from migrate.sites.scene import Scene
from migrate.syntax.lines import begins_line, ends_line
from migrate.syntax.trees import all_parameters, last_name

KEY = "torch.Tensor.data"


def decide(scene: Scene, site: Site, node: ast.Attribute) -> Edit | Refusal | None:
    """Return the edit of ``x.data``, the reason for none, or None where it stays."""
    if is_target(scene, node):
        place = scene.parent(node)
        if isinstance(place, ast.Subscript) and place.value is node and is_set_anew(scene, place):
            return Edit(site, Outcome.KEPT, None)  # goes with its statement
        if keeps_gradient(scene, node):
            return straight_through(site, node)
        if takes_gradient(scene, node):
            why = f"{ast.unparse(node)} gets a value without its gradient, which it keeps here"
            return Refusal(site, "INP204", why, "write the value with .detach()")
        if _sets_part(scene, node) and scene.function(node) is not None:
            return _bare(scene, site, node)  # PyNative forgets it where a gradient is computed
        return _bare(scene, site, node) if compiled(scene, node) else None
    kept = _kept(scene, site, node)
    if kept is not None or not compiled(scene, node):
        return kept
    if _is_written_later(scene, node):
        return _bare(scene, site, node)
    return _cut(scene, site, node, "")


def compiled(scene: Scene, node: ast.AST) -> bool:
    """Return whether graph mode may compile the code around a node."""
    function = scene.function(node)
    if function is None or function.name == "__init__":
        return False
    return in_module_class(scene, function) or in_forward(scene, function)


def is_set_anew(scene: Scene, place: ast.Subscript) -> bool:
    """Return whether an element of a Parameter is set in a copy, by a statement of its own."""
    statement, target = scene.statement(place), target_of(scene, place)
    if not compiled(scene, place) or not sets_alone(scene, statement):
        return False
    held = target.expr
    return target.holder is Holder.PLACE and isinstance(held, ast.Attribute) and (
        is_parameter(scene, held)
    )  # fmt: skip


def moves_weight(scene: Scene, item: ast.AugAssign) -> bool:
    """Return whether ``m.weight *= 0.5`` changes what may be a Parameter, where no gradient is
    recorded: torch changes the very object."""
    target = item.target
    weight = isinstance(target, ast.Attribute) and is_parameter(scene, target)
    return weight and is_stopped(scene, scene.file, item)


def sets_alone(scene: Scene, statement: ast.stmt) -> bool:
    """Return whether a statement sets nothing else, on lines of its own."""
    several = isinstance(statement, ast.Assign) and len(statement.targets) > 1
    unpacks = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple)
    alone = begins_line(scene.source, statement) and ends_line(scene.source, statement)
    return alone and not several and not unpacks


def straight_through(site: Site, node: ast.expr) -> Refusal:
    why = f"{ast.unparse(node)} gets another value, and torch keeps the gradient of the old one"
    return Refusal(
        site,
        "INP204",
        why,
        "write x = x + (value - x).detach() if that gradient is meant, x = value if not",
    )


def _cut(scene: Scene, site: Site, node: ast.Attribute, then: str) -> Edit:
    text, root = scene.spelling.local("mindspore.ops.stop_gradient")
    place = site.at(scene.source.span(node))
    parts = (f"{text}(", piece(scene.source, node.value), f"){then}")
    return Edit(place, Outcome.CONVERTED, parts, KEY, frozenset((root,)))


def _bare(scene: Scene, site: Site, node: ast.Attribute) -> Edit:
    place = site.at(scene.source.span(node))
    return Edit(place, Outcome.CONVERTED, (piece(scene.source, node.value),), KEY)


def is_target(scene: Scene, node: ast.AST) -> bool:
    """Return whether a statement or call writes into what a node gives, or into a part of it."""
    parent = scene.parent(node)
    while isinstance(parent, ast.Subscript) and parent.value is node:
        if not isinstance(parent.ctx, ast.Load):
            return True
        node, parent = parent, scene.parent(parent)
    call = scene.parent(parent) if isinstance(parent, ast.Attribute) else parent
    return isinstance(call, ast.Call) and written_by(scene, call) is node


def _is_written_later(scene: Scene, node: ast.Attribute) -> bool:
    """Return whether the variable that is bound to ``x.data`` is itself written into."""
    holder, function = scene.parent(node), scene.function(node)
    if not isinstance(holder, ast.Assign) or holder.value is not node or function is None:
        return False
    names = {t.id for t in holder.targets if isinstance(t, ast.Name)}
    return any(
        (is_target(scene, n) and isinstance(n.ctx, ast.Load))
        or isinstance(scene.parent(n), ast.AugAssign)
        for name in names
        for n in function.nodes
        if isinstance(n, ast.Name) and n.id == name
    )


# -- what keeps its gradient ------------------------------------------------------------------


def keeps_gradient(scene: Scene, node: ast.AST) -> bool:
    """Return whether a write through ``node`` leaves a gradient behind that MindSpore would cut.

    That is so of an intermediate that is computed where gradients are recorded; not of a Parameter,
    a buffer, what is made of numbers, or where nothing is differentiated.
    """
    function, owner = scene.function(node), _owner(scene, node)
    if function is None or not records(scene, function):
        return function is None and records(scene, None) and _is_intermediate(scene, owner, None)
    return _is_intermediate(scene, owner, function) and not _gives_numbers(scene, owner, function)


def _gives_numbers(scene: Scene, owner: ast.expr, function: Function) -> bool:
    """Return whether all reads of a variable that views a Parameter take its numbers alone.

    ``b = m.bias.view(n, -1); b.data[:, 4] += 1; m.bias = Parameter(b.view(-1))``: no gradient goes
    through b, neither before the write nor behind it, and the Parameter has none of another.
    """
    if not isinstance(owner, ast.Name) or owner.id not in function.locals:
        return False
    bound = function.assigned.get(owner.id, ())
    named = [n for n in ast.walk(function.node) if isinstance(n, ast.Name) and n.id == owner.id]
    stores = [n for n in named if not isinstance(n.ctx, ast.Load)]
    if not bound or len(stores) != len(bound) or not all(n in function.nodes for n in named):
        return False
    roots = [_viewed(a.value) for a in bound]
    if not all(isinstance(r, ast.Attribute) and is_parameter(scene, r) for r in roots):
        return False
    if any(_is_intermediate(scene, r, function) for r in roots):
        return False
    return not any(_goes_on(scene, n) for n in named if isinstance(n.ctx, ast.Load))


def _viewed(node: ast.expr) -> ast.expr:
    """Return what an expression takes parts and views of."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not shares(node.func.attr):
                return node
            node = node.func.value
        else:
            return node


def takes_gradient(scene: Scene, node: ast.AST) -> bool:
    """Return whether a write through ``node`` puts what a gradient reaches into a fresh Tensor.

    Torch writes the numbers alone; an assignment to the Tensor would record the gradient.
    """
    function, owner = scene.function(node), _owner(scene, node)
    if function is None or not records(scene, function):
        return False
    if isinstance(owner, ast.Name):
        if not any(is_fresh(a.value) for a in function.assigned.get(owner.id, ())):
            return False
    elif not isinstance(node, ast.Attribute) or not _sets_part(scene, node):
        return False
    return any(carries(scene, v, function.node, frozenset()) for v in _written(scene, node))


def _sets_part(scene: Scene, node: ast.Attribute) -> bool:
    """Return whether a part of a Tensor is set through its ``.data``."""
    part = scene.parent(node)
    return isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)


def _written(scene: Scene, node: ast.AST) -> list[ast.expr]:
    """Return the values of an assignment to a part of ``node``, or of a call that writes."""
    parent = scene.parent(node)
    while isinstance(parent, ast.Subscript) and parent.value is node:
        if not isinstance(parent.ctx, ast.Load):
            statement = scene.statement(parent)
            return [statement.value] if isinstance(statement, (ast.Assign, ast.AugAssign)) else []
        node, parent = parent, scene.parent(parent)
    call = scene.parent(parent) if isinstance(parent, ast.Attribute) else parent
    assert isinstance(call, ast.Call)
    return [a for a in (*call.args, *(k.value for k in call.keywords)) if a is not node]


def _owner(scene: Scene, node: ast.AST) -> ast.expr:
    """Return the expression whose storage ``x.data``, ``x.data[i]`` or ``x.data.add_(1)`` is."""
    assert isinstance(node, ast.expr)
    while True:
        if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.Attribute) and is_data(scene, node)
        ):
            node = node.value
        elif is_chain(scene, node):
            assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            node = node.func.value
        else:
            return node


def records(scene: Scene, function: Function | None, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether a gradient may be computed through what a function does.

    It is unknown, and so it may, where nothing shows who calls the function.
    """
    if function is None:
        return _differentiates(scene.file.nodes)
    if function.key in seen:
        return False
    if in_module_class(scene, function) or in_forward(scene, function):
        return True
    sites = call_sites(scene, function)
    if not sites or _differentiates(function.nodes):
        return True
    return any(records(scene_of(scene, f), c, seen | {function.key}) for f, _, c in sites)


def _differentiates(nodes: Iterable[ast.AST]) -> bool:
    calls = (n.func for n in nodes if isinstance(n, ast.Call))
    return any(last_name(f) in ("backward", "grad") for f in calls)


def _is_intermediate(scene: Scene, owner: ast.expr, function: Function | None) -> bool:
    inside = function.node if function is not None else scene.source.tree
    if isinstance(owner, ast.Name):
        return _name_computes(scene, owner, function)
    if member_name(owner) is not None:
        return any(_stores_computed(scene, owner, v, f) for v, f in _stored(scene, owner))
    return carries(scene, owner, inside, frozenset())


def _name_computes(
    scene: Scene, name: ast.Name, function: Function | None, seen: frozenset[str] = frozenset()
) -> bool:
    """Return whether a variable may hold what was computed, by all that binds it."""
    if function is None:
        bound = [a for a in scene.file.of(ast.Assign) if scene.function(a) is None]
    else:
        bound = list(function.assigned.get(name.id, ()))
    bound = [a for a in bound if any(getattr(t, "id", "") == name.id for t in a.targets)]
    if any(_computes(scene, a.value, function) for a in bound if not _through(a, name)):
        return True
    for loop, target in _loops(scene, function):
        if any(n.id == name.id for n in names_of(target)):
            return _computes(scene, loop, function)
    if bound or function is None:
        return False
    own = {a.arg for a in function.parameters[1 if function.owner is not None else 0 :]}
    if name.id not in own or function.key in seen or receives_buffer(scene, function, name.id):
        return False
    return in_forward(scene, function) or _is_passed_computed(
        scene, function, name.id, seen | {function.key}
    )


def _is_passed_computed(scene: Scene, function: Function, name: str, seen: frozenset[str]) -> bool:
    """Return whether calls pass what was computed for a parameter.

    Where others do not, these calls are flagged instead of the function.
    """
    wrong, sites = [], call_sites(scene, function)
    for file, call, caller in sites:
        given, there = passed(function, call, name), scene_of(scene, file)
        owner = _owner(there, given) if given is not None else None
        if isinstance(owner, ast.Name):
            computed = _name_computes(there, owner, caller, seen)
        else:
            computed = owner is not None and _is_intermediate(there, owner, caller)
        if computed:
            text = ast.unparse(owner or call)
            why = f"{text} gets another value, and torch keeps the gradient of the old one"
            wrong.append((file.path, call, Missed("INP204", why)))
    if not wrong or len(wrong) == len(sites):
        return bool(wrong)
    stopped = [stop(scene, *one) for one in wrong]  # each of them
    return not all(stopped)


def _loops(scene: Scene, function: Function | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in function.nodes if function is not None else scene.file.nodes:
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            yield node.iter, node.target


def _through(item: ast.Assign, name: ast.Name) -> bool:
    """``x = x.data`` says nothing new."""
    return isinstance(item.value, ast.Attribute) and getattr(item.value.value, "id", "") == name.id


def _computes(scene: Scene, value: ast.expr, function: Function | None) -> bool:
    """Return whether a value is computed from what a gradient reaches, where it is recorded."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return any(_computes(scene, v, function) for v in value.elts)
    if isinstance(value, ast.IfExp):
        return any(_computes(scene, v, function) for v in (value.body, value.orelse))
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and (
        value.func.id in ("zip", "enumerate", "list", "reversed", "iter")
    ):  # fmt: skip
        return any(_computes(scene, v, function) for v in value.args)
    if isinstance(value, ast.Attribute) and not (value.attr == "data" and (
        is_all(scene.kind(value.value), "Tensor")
    )):  # fmt: skip
        return any(_stores_computed(scene, value, v, f) for v, f in _stored(scene, value))
    if isinstance(value, ast.Attribute):  # x.data again
        return _is_intermediate(scene, value.value, function)
    made = scene.kind(value.func) if isinstance(value, ast.Call) else ()
    if any(a.name.endswith(_LEAVES) for a in made):
        return False
    last = value.func.attr if isinstance(value, ast.Call) and (
        isinstance(value.func, ast.Attribute)
    ) else ""  # fmt: skip
    if last in _HOLDING or is_stopped(scene, scene.file, value):
        return False
    if isinstance(value, (ast.DictComp, ast.ListComp)) and _from_state(value):
        return False
    inside = function.node if function is not None else scene.source.tree
    return carries(scene, value, inside, frozenset())


def _from_state(value: ast.DictComp | ast.ListComp) -> bool:
    """Return whether a comprehension is made of a ``state_dict()`` alone, which has no gradient."""
    made = value.value if isinstance(value, ast.DictComp) else value.elt
    clause = value.generators[0]
    bound = {n.id for n in names_of(clause.target)}
    used = {n.id for n in names_of(made)}
    calls = (n.func for n in ast.walk(clause.iter) if isinstance(n, ast.Call))
    held = any(isinstance(f, ast.Attribute) and f.attr == "state_dict" for f in calls)
    return held and used <= bound and len(value.generators) == 1


_LEAVES = ("Parameter", "Buffer", "torch2ms.leaf", "torch2ms.group_weights")
_HOLDING = frozenset(
    "parameters named_parameters buffers named_buffers modules named_modules children "
    "named_children state_dict values items keys".split()
)


def _stored(scene: Scene, owner: ast.expr) -> list[tuple[ast.expr, Function | None]]:
    """Return what the file assigns to an attribute outside of constructors, and where."""
    name = member_name(owner)
    if name is None or (isinstance(owner, ast.Attribute) and is_buffer(scene, owner)):
        return []
    found: list[tuple[ast.expr, Function | None]] = []
    for item in scene.file.of(ast.Assign):
        targets = (t for t in item.targets if isinstance(t, ast.Attribute))
        if any(re.fullmatch(name, t.attr) for t in targets):
            function = scene.function(item)
            if function is not None and function.name != "__init__":
                found.append((item.value, function))
    return found


def _stores_computed(
    scene: Scene, owner: ast.expr, value: ast.expr, function: Function | None
) -> bool:
    same = _is_same(value, getattr(owner, "attr", ""), function)
    return not same and _computes(scene, value, function)


def _is_same(
    value: ast.expr, attribute: str, function: Function | None, seen: frozenset[str] = frozenset()
) -> bool:
    """Return whether a value is an attribute itself, perhaps moved to another device.

    ``held = self.held; if ...: held = held.to(x.device); self.held = held`` says nothing new.
    """
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _MOVING:
            return False
        value = value.func.value
    if isinstance(value, ast.Attribute):
        return value.attr == attribute
    if not isinstance(value, ast.Name) or function is None:
        return False
    if value.id in seen:
        return True  # what else binds it is asked already
    bound = [a for a in function.assigned.get(value.id, ()) if isinstance(a.targets[0], ast.Name)]
    names = (n for n in function.nodes if isinstance(n, ast.Name) and n.id == value.id)
    stores = sum(isinstance(n.ctx, ast.Store) for n in names)
    own = any(a.arg == value.id for a in all_parameters(function.node.args))
    known = bool(bound) and not own and stores == len(bound)
    return known and all(
        _is_same(a.value, attribute, function, seen | {value.id}) for a in bound
    )  # fmt: skip


_MOVING = frozenset(("to", "cpu", "cuda", "type_as", "contiguous"))


def differentiated_behind(scene: Scene, at: ast.AST, seen: frozenset[str] = frozenset()) -> str:
    """Return what was computed before ``x.data = y`` and may be differentiated behind it, or ""."""
    function = scene.function(at)
    if function is None or function.key in seen or is_stopped(scene, scene.file, at):
        return ""
    facts, statement = scene.facts, scene.statement(at)
    names = [n for n in function.nodes if isinstance(n, ast.Name)]
    for name in sorted(function.stores):
        loads = [n for n in names if n.id == name and isinstance(n.ctx, ast.Load)]
        done = any(getattr(scene.parent(n), "attr", "") == "backward" for n in loads)
        if done or not any(_goes_on(scene, n) and facts.carries(name, at, n) for n in loads):
            continue
        made = (i.value for i in function.assigned.get(name, ()))
        before = (v for v in made if facts.may_follow(v, statement) and _runs_weights(scene, v))
        if any(facts.carries(name, v, at) for v in before):
            return name
    for file, call, _ in call_sites(scene, function):
        there = scene_of(scene, file)
        if found := differentiated_behind(there, call, seen | {function.key}):
            return f"{found} at {file.path}:{call.lineno}"
    return ""


def _goes_on(scene: Scene, node: ast.expr) -> bool:
    """Return whether more than the numbers of a value are read, also of its parts and views."""
    around = scene.parent(node)
    if isinstance(around, ast.Attribute):
        call = scene.parent(around)
        if isinstance(call, ast.Call) and call.func is around and shares(around.attr):
            return around.attr not in _NUMBERS_ALONE and _goes_on(scene, call)
        return around.attr not in _NUMBERS_ALONE
    if isinstance(around, ast.Subscript) and around.value is node:
        return not isinstance(around.ctx, ast.Load) or _goes_on(scene, around)
    if not isinstance(around, ast.Call) or around.func is node:
        return True
    leaf = any(a.name.endswith(_LEAVES) for a in scene.kind(around.func))
    return not leaf and last_name(around.func) not in _PLAIN_CALLS


_NUMBERS_ALONE = METADATA | {"item", "detach", "tolist", "numpy", "data", "argmax"}
_PLAIN_CALLS = ("float", "int", "print", "len", "str", "bool", "isinstance")


def _runs_weights(scene: Scene, value: ast.expr) -> bool:
    """Return whether a value is computed by a Module, with a gradient."""
    calls, function = (n for n in ast.walk(value) if isinstance(n, ast.Call)), scene.function(value)
    run = any(a.kind == "Module" for c in calls for a in scene.kind(c.func))
    return run and function is not None and carries(scene, value, function.node, frozenset())


# -- what is kept while .data is bound anew ---------------------------------------------------


def _kept(scene: Scene, site: Site, node: ast.Attribute) -> Edit | Refusal | None:
    """Return a copy of ``x.data`` that is kept where ``x.data`` may be bound anew behind that.

    ``backup[name] = p.data; p.data = shadow[name]``: in torch p gets other memory, and what was
    kept stays as it was. Here the weight keeps its memory and gets other values.
    """
    holder, name = scene.parent(node), ast.unparse(node)
    alone = isinstance(holder, ast.Assign) and holder.value is node
    if alone and any(
        _binds(scene, i, name) for i in evaluated_behind(scene, scene.statement(node))
    ):
        place = site.at(scene.source.span(node))
        if compiled(scene, node):
            return _cut(scene, site, node, ".copy()")
        parts = (Piece(place.span), ".copy()")
        return Edit(place, Outcome.CONVERTED, parts, KEY)
    made = isinstance(node.value, ast.Call) or last_name(node.value) == "grad"
    lends = not made and is_lent(scene, node)
    return _bound_anew(site, name) if lends else None


def lent(scene: Scene, site: Site, call: ast.Call, name: str) -> Refusal | None:
    """Refuse what a method gives of weights and is kept while the memory of one is bound anew."""
    held = call.func.value if isinstance(call.func, ast.Attribute) else call
    if name != "torch.nn.Module.state_dict" and not (
        name == "torch.Tensor.detach" and may_be_weight(scene, held)
    ):
        return None
    return _bound_anew(site, ast.unparse(call)) if is_lent(scene, call) else None


def _bound_anew(site: Site, name: str) -> Refusal:
    return Refusal(
        site,
        "INP206",
        f"{name} is kept, and somewhere .data is bound anew: a weight keeps its memory here",
        f"keep {name}.clone(), if later updates of it are not to be seen",
    )


def _binds(scene: Scene, item: ast.AST, name: str) -> bool:
    return any(stores_data(scene, n) and ast.unparse(n) == name for n in ast.walk(item))
