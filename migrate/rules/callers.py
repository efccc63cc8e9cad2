"""Decide the fate of a write: which alias reads the old value, in its function or its callers."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from migrate.analysis.program import Function
from migrate.analysis.storage import SAME, root
from migrate.analysis.types.kinds import is_all
from migrate.rules import data_attribute
from migrate.rules.alias_findings import Findings
from migrate.rules.alias_walk import (
    changes_object,
    findings,
    findings_entered,
    owner_parameter,
)
from migrate.rules.alias_writes import through_data
from migrate.rules.called_from import (
    CallSite,
    call_sites,
    functions_of,
    handed_sites,
    handed_to,
    in_forward,
    in_module_class,
    passed,
    scene_of,
)
from migrate.rules.kept_memory import passes_buffer
from migrate.rules.stopped import is_stopped
from migrate.rules.stopped_calls import Missed, calls_stopped, stop
from migrate.rules.torch_sharing import METADATA, is_written
from migrate.rules.written import Holder, first_argument, is_chain, target_of, unsure_item
from migrate.sites.scene import Scene, once
from migrate.syntax.lines import begins_line
from migrate.syntax.trees import all_names, all_parameters, is_none

UNSEEN = "the caller's tensor, and nothing shows who calls it"
_NO_HOLDERS = frozenset("int float bool str None complex".split())  # nor do they hold a tensor
_ONCE = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield)


@dataclass(frozen=True)
class Fate:
    """What may become of a write.

    ``missed``: it has to be flagged; ``assigned``: the very object must change; ``renewed``: the
    variable must be bound to the result as well; ``unseen``: nothing else holds the tensor.
    ``entered``: loops that have to go round once for that; where one does not, the program stops.
    ``lent``: the object is that of callers who are not seen; graph mode has no objects.
    """

    missed: Missed | None = None
    assigned: bool = False
    renewed: bool = False
    unseen: bool = False
    entered: tuple[ast.For, ...] = ()
    lent: bool = False


INTRICATE = Missed(
    "INP206", "too many tensors of this function may share storage with what that changes"
)
PART = Missed("INP206", "a part of a tensor is passed to a function that changes the whole object")


def fate(scene: Scene, node: ast.AST, sure: bool = True) -> Fate:
    """Decide about the write that ``node`` is; not ``sure``: what is written may be no Tensor."""
    function = _around(scene, node)
    made = _fate(scene, node, sure, findings(scene, function))
    if made.missed is None or function is None or findings(scene, function).intricate:
        return made
    return _entering(scene, function, node, sure) or made


def _entering(scene: Scene, function: Function, node: ast.AST, sure: bool) -> Fate | None:
    """Return the fate of a write that is missed only where some loop goes round not once.

    ``y = x[0]`` in front of a loop that binds y is the tensor of x behind it if that has no round.
    """
    loops = [n for n in function.of(ast.For) if isinstance(n, ast.For) and sized(scene, n.iter)]
    repairs = findings(scene, function).repairs.get(id(node))

    def decided(some: list[ast.For]) -> Fate | None:
        found = findings_entered(scene, function, frozenset(map(id, some)))
        made = _fate(scene, node, sure, found)
        same = found.repairs.get(id(node)) == repairs
        return made if made.missed is None and same and not found.intricate else None

    made = decided(loops) if loops else None
    for loop in loops if made is not None else ():
        fewer = [one for one in loops if one is not loop]
        if (without := decided(fewer) if fewer else None) is not None:
            loops, made = fewer, without
    return replace(made, entered=tuple(loops)) if made is not None else None


def sized(scene: Scene, node: ast.expr) -> tuple[ast.expr, ...]:
    """Return what a loop goes through: it has no round where one of these is empty.

    () where that cannot be asked twice, or has no length.
    """
    if isinstance(node, ast.Call):
        name, args = getattr(node.func, "id", ""), node.args
        if node.keywords or not any(a.kind == "builtin" for a in scene.kind(node.func)):
            return ()
        if name == "range":
            return (node,) if all(can_repeat(scene, a) for a in args) else ()
        each = args if name == "zip" else args[:1] if name in ("enumerate", "reversed") else []
        parts = [sized(scene, one) for one in each]
        return tuple(one for part in parts for one in part) if all(parts) else ()
    known = is_all(scene.kind(node), "list", "tuple", "dict", "Module")
    return (node,) if known and can_repeat(scene, node) else ()


def can_repeat(scene: Scene, node: ast.expr) -> bool:
    """Return whether an expression may be evaluated twice: calls in it only ask for sizes."""
    once = [n for n in ast.walk(node) if isinstance(n, _ONCE)]
    return all(isinstance(n, ast.Call) and _asks_size(scene, n) for n in once)


def _asks_size(scene: Scene, call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute):
        return func.attr in METADATA and is_all(scene.kind(func.value), "Tensor")
    return getattr(func, "id", "") == "len" and is_all(scene.kind(func), "builtin")


def _fate(scene: Scene, node: ast.AST, sure: bool, found: Findings) -> Fate:
    """Decide about a write by what is found in its function."""
    function, key = _around(scene, node), id(node)
    seen = found.seen.get(key)
    if found.intricate:
        return Fate(Missed("INP203", "too many tensors of this function may share storage"))
    if seen is not None:
        return Fate(Missed("INP203", f"read later as {seen}"))
    lost = effect(scene, function, key, "lost")
    if lost:
        return Fate(Missed("INP205", f"{lost} reads it behind that"))
    held = _added_to(scene, function, key, set())
    if held:
        return Fate(Missed("INP203", f"read later as {held}"))
    given = dict(found.given.get(key, {}))
    assigned = key in found.assigned
    if function is not None:
        given.pop(owner_parameter(function), None)
    if not given or function is None:
        return Fate(None, assigned, key in found.renewed, key in found.unseen)
    default = next((n for n in sorted(given) if _keeps_default(scene, function, n)), "")
    if default:
        return Fate(Missed("INP206", f"the default of {default}, which the next call gets"))
    how = max(given.values())
    in_module = in_module_class(scene, function)
    if not sure or (how == SAME and _sets_item(scene, node) and in_module):
        assigned_too = True  # an element is set in the caller's very object
    else:
        assigned_too = assigned
    alone = _is_certain(scene, function, node, given.keys())
    problem = lent(scene, function, frozenset(given), how, assigned_too, alone)
    if problem is not None and problem.by == UNSEEN and how == SAME:
        alone = not isinstance(function.node, ast.Lambda)
        asks = isinstance(node, ast.AugAssign) and _may_be_none(scene, function, {*given})
        if alone and not asks and can_change_object(scene, node):
            return Fate(None, True, key in found.renewed, lent=True)
    if problem is not None:
        return Fate(problem)
    whole = assigned or changes_object(scene, function)
    return Fate(None, whole, key in found.renewed)


def _is_certain(scene: Scene, function: Function, node: ast.AST, names: Collection[str]) -> bool:
    """Return whether who calls a function comes to a write; one of what may be a number asks."""
    asks = False
    if isinstance(node, (ast.AugAssign, ast.Subscript)):
        target = node.target if isinstance(node, ast.AugAssign) else node.value
        sure = is_all(scene.kind(target), "Tensor")
        asks = not sure or bool(_may_be_none(scene, function, {*names}))
    return not asks and _is_reached(scene, function, node, names)


def _keeps_default(scene: Scene, function: Function, name: str) -> bool:
    """Return whether some call leaves out a parameter whose default may be a Tensor."""
    value = function.defaults.get(name)
    if value is None or "Tensor" not in scene.kind_names(value):
        return False
    calls = [call for _, call, _ in call_sites(scene, function)]
    spread = any(k.arg is None for c in calls for k in c.keywords)
    return not calls or spread or any(passed(function, c, name) is None for c in calls)


def optional(scene: Scene, node: ast.AugAssign | ast.Subscript | ast.Call) -> dict[str, bool]:
    """Return the parameters of which one is written, where each may hold no tensor; {} otherwise.

    Where a call gives a tensor for none of them, the one that changes was made in the function.
    Each name tells whether a call leaves it out for that (None), or gives a number or a text.
    """
    function = _around(scene, node)
    target = node.target if isinstance(node, ast.AugAssign) else getattr(node, "value", None)
    plain = function is not None and not isinstance(function.node, ast.Lambda)
    if function is None or not plain or not isinstance(target, ast.Name):
        return {}
    sure = not isinstance(node, ast.Subscript) or not unsure_item(scene, node)
    why = fate(scene, node, sure).missed
    if why is None or why.code != "INP206":
        return {}
    found = findings(scene, function)
    names = {*found.given.get(id(node), {})} - {owner_parameter(function)}
    if id(node) in found.assigned or (isinstance(node, ast.AugAssign) and is_unfolded(scene, node)):
        return {}
    return _may_be_none(scene, function, names)


def _may_be_none(scene: Scene, function: Function, names: set[str]) -> dict[str, bool]:
    """Return the parameters that may be no tensors, if all are such: whether None says so."""
    found = {}
    for name in sorted(names):
        kinds = {atom.kind for atom in scene.inference.parameter(function, name)}
        if kinds - {"Tensor"} and kinds <= {"Tensor", *_NO_HOLDERS}:
            found[name] = False
        elif is_none(function.defaults.get(name)):
            found[name] = True
        else:
            return {}
    return found


def _sets_item(scene: Scene, node: ast.AST) -> bool:
    target = node.target if isinstance(node, ast.AugAssign) else node
    if not isinstance(target, ast.Subscript):
        return False
    return target_of(scene, target).holder is not Holder.VIEW


def effect(
    scene: Scene,
    function: Function | None,
    by: int,
    kind: Literal["lost", "rebound"],
    seen: set[int] | None = None,
) -> str:
    """Return the alias that misses the effect of a statement or call on an attribute; "" if none.

    "lost": the attribute takes a value without its gradient; "rebound": it is bound anew.
    ``seen``: the statements and calls that were asked on any way to here; each has one answer.
    """
    seen = set() if seen is None else seen
    found = findings(scene, function)
    here = (found.cut if kind == "lost" else found.seen).get(by, "")
    paths = found.lost if kind == "lost" else found.rebound
    handed = any(by in writes for writes in paths.values())
    if here or function is None or not handed or by in seen:
        return here
    seen.add(by)
    for file, call, caller in _all_sites(scene, function):
        if findings(scene_of(scene, file), caller).intricate:
            if not stop(scene, file.path, call, INTRICATE):
                return f"some name at {file.path}:{call.lineno}, which is too intricate"
            continue
        there = effect(scene_of(scene, file), caller, id(call), kind, seen)
        if there:
            return there if ":" in there else f"{there} at {file.path}:{call.lineno}"
    return ""


def _added_to(scene: Scene, function: Function | None, by: int, seen: set[int]) -> str:
    """Return the caller that reads the tensor an attribute held before ``self.x += y``."""
    found = findings(scene, function)
    if function is None or by in seen:
        return ""
    seen.add(by)
    held = (*found.added_to.values(), *found.changed.values(), *found.outside.values())
    if not any(by in writes for writes in held):
        return ""
    for file, call, caller in _all_sites(scene, function):
        there, key = scene_of(scene, file), id(call)
        one = findings(there, caller)
        name = one.seen.get(key) or _added_to(there, caller, key, seen)
        if one.intricate:
            if not stop(scene, file.path, call, INTRICATE):
                return f"some name at {file.path}:{call.lineno}, which is too intricate"
            continue
        given = dict(one.given.get(key, {}))
        if caller is not None and not name and given:
            given.pop(owner_parameter(caller), None)
            names, how = frozenset(given), max(given.values(), default=SAME)
            missed = lent(there, caller, names, how, False) if given else None
            name = missed.by if missed is not None else ""
        if name:
            return name if ":" in name else f"{name} at {file.path}:{call.lineno}"
    return ""


def _all_sites(scene: Scene, function: Function) -> list[CallSite]:
    """Return the calls that mean a function, and those that hand it to what may call it."""
    return [*call_sites(scene, function), *handed_sites(scene.inference, function)]


def is_unfolded(scene: Scene, node: ast.AugAssign) -> bool:
    """Return whether a new tensor has to be made, since an element of it is set later."""
    return _is_unfolded(scene, _around(scene, node), id(node), set())


def _is_unfolded(scene: Scene, function: Function | None, by: int, seen: set[int]) -> bool:
    """Return whether an element is set in the result of an augmented assignment or a call."""
    found = findings(scene, function)
    if by in found.unfolded:
        return True
    back = any(root(r.region)[1:2] == (by,) for r in found.returned)
    if not back or function is None or by in seen:
        return False
    seen.add(by)
    return any(
        _is_unfolded(scene_of(scene, file), caller, id(call), seen)
        for file, call, caller in call_sites(scene, function)
    )


def _around(scene: Scene, node: ast.AST) -> Function | None:
    """The innermost function or lambda."""
    holder = scene.parent(node)
    return scene.file.function_at(holder) if holder is not None else None


def lent(
    scene: Scene,
    function: Function,
    names: frozenset[str],
    how: int,
    assigned: bool,
    alone: bool = False,
    seen: set[tuple[int, frozenset[str], int, bool]] | None = None,
) -> Missed | None:
    """A tensor that a caller lent is changed: whether some caller would miss that.

    ``names``: the parameters that took it. ``alone``: who calls the function comes to the write, so
    that callers who would miss it can stop alone where others would not. ``seen``: what was asked
    on any way to here; each question has one answer.
    """
    seen = set() if seen is None else seen
    asked = (id(function), names, how, assigned)
    if asked in seen:
        return None
    seen.add(asked)
    nothing = changes_object(scene, function)
    if nothing and how != SAME:
        return Missed("INP206", "a part of the caller's tensor, which the caller may read")
    good: dict[int, Missed | None] = {}
    bad: dict[int, tuple[CallSite, Missed]] = {}
    sites = call_sites(scene, function)
    for site in _all_sites(scene, function):  # a call may be there twice
        missed = _missed_by(scene, function, site, names, nothing, alone, seen)
        if missed is None or missed.by == UNSEEN:
            good[id(site[1])] = good.get(id(site[1])) or missed
        elif not alone or not _means_alone(scene_of(scene, site[0]), site[1], function):
            return missed
        else:
            bad[id(site[1])] = site, missed
    others = any(id(call) not in bad for _, call, _ in sites)
    for (file, call, _), missed in bad.values():
        if not others or not stop(scene, file.path, call, missed):
            return missed
    unseen = any(missed for call, missed in good.items() if call not in bad)
    if not unseen and (sites or nothing or assigned):
        return None
    return Missed("INP206", UNSEEN)


def _means_alone(scene: Scene, call: ast.AST, function: Function) -> bool:
    """Return whether a call runs no other function of the program."""
    if not isinstance(call, ast.Call):
        return False
    atoms = scene.kind(call.func)
    runs = {f for atom in atoms for f in functions_of(scene.inference, atom)}
    return runs | {*handed_to(scene.inference, call)} == {function}


def _missed_by(
    scene: Scene, function: Function, site: CallSite, names: frozenset[str], nothing: bool,
    alone: bool, seen: set[tuple[int, frozenset[str], int, bool]],
) -> Missed | None:  # fmt: skip
    """Return what a caller, or one of its callers, would miss of a change to what it lent."""
    file, call, caller = site
    there = scene_of(scene, file)
    found = findings(there, caller)
    line = f"{file.path}:{call.lineno}"
    if found.intricate or id(call) in found.lent:
        if stop(scene, file.path, call, INTRICATE if found.intricate else PART):
            return None
        why = ", which is too intricate" * found.intricate
        return Missed("INP206", f"the caller's tensor, at {line}{why}")
    if id(call) in found.seen:
        later = found.seen[id(call)]
        return Missed("INP206", f"the caller's tensor, read later at {line} as {later}")
    held = all(passes_buffer(there, function, call, caller, name) for name in names)
    if nothing and not held and caller is not None and in_forward(there, caller):
        return Missed("INP206", f"the caller's tensor, in the Module at {line}")
    again = dict(found.given.get(id(call), {}))
    if caller is None or not again:
        return None
    again.pop(owner_parameter(caller), None)
    if not again:
        return None
    alone = alone and _is_reached(there, caller, call, again.keys())
    return lent(there, caller, frozenset(again), max(again.values()), nothing, alone, seen)


def _is_reached(scene: Scene, function: Function, node: ast.AST, names: Collection[str]) -> bool:
    """Return whether no other argument of a call decides that a write is done, or a call made."""
    others = {p.arg for p in all_parameters(function.node.args)} - set(names)
    tests = [n.test for n in function.of(ast.If) if isinstance(n, ast.If) and _leaves(n)]
    place: ast.AST | None = node
    while place is not None and place is not function.node:
        tests += [place.values[0]] if isinstance(place, ast.BoolOp) else []
        test = getattr(place, "test", None)
        tests += [test] if isinstance(test, ast.expr) else []
        place = scene.parent(place)
    return all(others.isdisjoint(all_names(test)) for test in tests)


def _leaves(branch: ast.If) -> bool:
    """Return whether a function may be left in a branch, in front of what follows."""
    return any(isinstance(n, ast.Return) for n in ast.walk(branch))


def can_change_object(scene: Scene, node: ast.AST) -> bool:
    """Return whether a write by a method or an operator has a statement that graph mode can be
    stopped at, and writes what a name holds."""
    target: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        full = f"torch.Tensor.{node.func.attr}"
        rows = scene.table.rows(full) or scene.table.rows(full[:-1])
        method = is_all(scene.kind(node.func), "method") and is_written(node.func.attr)
        target = node.func.value if method and rows and not rows[0].flag else None
        while isinstance(target, ast.Call) and is_chain(scene, target):
            assert isinstance(target.func, ast.Attribute)
            target = target.func.value
    elif isinstance(node, ast.AugAssign) and is_all(scene.kind(node.target), "Tensor"):
        target = node.target
    return isinstance(target, ast.Name) and begins_line(scene.source, scene.statement(node))


def stopped_calls(scene: Scene) -> dict[ast.Call, Missed]:
    """Return the calls of a file that are flagged instead of the write in the function they call.

    They pass what the caller reads later, or a part of a tensor to what changes the whole object,
    or stand where too many tensors may share storage. The function's other callers go on. Every
    write to a parameter in the program is decided for that, as the calls may stand in any file.
    """
    _decide_writes(scene)
    found = calls_stopped(scene).calls[scene.file.path]
    some = scene.file.of(ast.Call) if found else []
    return {call: found[id(call)] for call in some if id(call) in found}


@once
def _decide_writes(scene: Scene) -> None:
    """Decide every write that callers may see: some were asked about before, for other reasons."""
    for file in scene.inference.program.files.values():
        there = scene_of(scene, file)
        for function in file.functions.values():
            for node in _writes_outside(function):
                fate(there, node)
                written = getattr(node, "func", node)
                place = getattr(written, "value", written)
                if not isinstance(place, ast.expr):
                    continue
                if is_stopped(there, file, node) or through_data(there, place):
                    data_attribute.keeps_gradient(there, place)
    calls_stopped(scene).complete = True


def _writes_outside(function: Function) -> list[ast.AST]:
    """Return what may change a parameter of a function or what it holds, by its text."""
    names = {p.arg for p in all_parameters(function.node.args)}
    found: list[ast.AST] = []
    for node in function.nodes:
        places: tuple[ast.AST | None, ...] = ()
        if isinstance(node, ast.Call):
            outs = [k.value for k in node.keywords if k.arg == "out"]
            places = tuple(one for out in outs for one in getattr(out, "elts", (out,)))
            if isinstance(node.func, ast.Attribute) and is_written(node.func.attr):
                filled = "init" in ast.unparse(node.func)  # filled_parts.py has these
                places = (*places, node.func.value, None if filled else first_argument(node))
        elif isinstance(node, ast.AugAssign):
            places = (node.target,)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            places = (node.value,)
        if any(isinstance(p, ast.Name) and p.id in names for p in map(_outermost, places)):
            found.append(node)
    return found


def _outermost(place: ast.AST | None) -> ast.AST | None:
    """Return what an attribute or element is of."""
    while isinstance(place, (ast.Attribute, ast.Subscript)):
        place = place.value
    return place
