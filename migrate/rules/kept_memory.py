"""Tell whether what shares the memory of weights is kept while ``.data`` of one is bound anew.

In torch a weight whose ``.data`` is bound anew has other memory, and who kept the old one keeps its
numbers; here a weight keeps its memory and takes the new numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.analysis.passing import arguments
from migrate.analysis.program import Function
from migrate.analysis.summaries import ANY, MUTATING
from migrate.analysis.types.kinds import is_all
from migrate.rules.buffers import evaluated_behind
from migrate.rules.called_from import call_sites, handed_sites, passed, scene_of
from migrate.rules.torch_sharing import shares
from migrate.sites.buffer_gradients import is_buffer, is_data, is_parameter, registered
from migrate.sites.scene import Scene
from migrate.syntax.trees import last_name


def may_be_weight(scene: Scene, node: ast.expr) -> bool:
    """Return whether a value may be a Parameter: an attribute, or what a loop over them gives."""
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Attribute) and is_parameter(scene, node)
    for binding in scene.facts.reach(node).bindings:
        loops = scene.around(binding.place, ast.stmt)
        header = next((n for n in loops if isinstance(n, ast.For | ast.comprehension)), None)
        named = (last_name(n.func) for n in ast.walk(header.iter) if isinstance(n, ast.Call)) if (
            header is not None) else ()  # fmt: skip
        if any("parameters" in name or name == "state_dict" for name in named):
            return True
    values = scene.facts.values(node)
    return any(isinstance(v, ast.Attribute) and is_parameter(scene, v) for v in values)


def receives_buffer(
    scene: Scene, function: Function, name: str, seen: frozenset[str] = frozenset()
) -> bool:
    """Return whether each call passes a saved buffer of a Module for a parameter.

    It is a Parameter in MindSpore: what is written into it is written into the Module.
    """
    if function.key in seen or not registered(scene) or handed_sites(scene.inference, function):
        return False
    sites, seen = call_sites(scene, function), seen | {function.key}
    return bool(sites) and all(
        passes_buffer(scene_of(scene, file), function, call, caller, name, seen)
        for file, call, caller in sites
    )


def passes_buffer(
    scene: Scene,
    function: Function,
    call: ast.Call,
    caller: Function | None,
    name: str,
    seen: frozenset[str] = frozenset(),
) -> bool:
    """Return whether a call passes a saved buffer of a Module for a parameter of a function."""
    given = passed(function, call, name)
    if isinstance(given, ast.Attribute):
        return is_buffer(scene, given)
    if not isinstance(given, ast.Name) or caller is None or given.id in caller.stores:
        return False
    own = {a.arg for a in caller.parameters[1 if caller.owner is not None else 0 :]}
    return given.id in own and receives_buffer(scene, caller, given.id, seen)


def is_lent(scene: Scene, value: ast.expr) -> bool:
    """Return whether a value that shares the memory of weights is kept while one is bound anew."""
    files = scene.inference.program.in_sight(scene.file.path)
    if not any(stores_data(scene_of(scene, f), n) for f in files for n in f.of(ast.Attribute)):
        return False
    return _Lent(set()).is_kept(scene, value)


@dataclass(frozen=True)
class _Lent:
    """A search of what keeps a value; ``seen`` are the expressions that were looked at."""

    seen: set[int]

    def is_kept(self, scene: Scene, value: ast.expr) -> bool:
        """Return whether what an expression gives, or holds, is there when weights are bound."""
        around = scene.parent(value)
        if id(value) in self.seen:
            return False
        self.seen.add(id(value))
        if isinstance(around, ast.Call) and value is not around.func:
            return self._is_passed(scene, around, value)
        if isinstance(around, ast.Call):
            return self.is_kept(scene, around)
        if isinstance(around, ast.Attribute):
            goes_on = around.attr in _SHALLOW or shares(around.attr)
            return goes_on and self.is_kept(scene, around)
        if isinstance(around, ast.comprehension):
            made = scene.parent(around)
            return not _copies(made) and isinstance(made, ast.expr) and self.is_kept(scene, made)
        if isinstance(around, ast.keyword):
            call = scene.parent(around)
            return isinstance(call, ast.Call) and self._is_passed(scene, call, value)
        if isinstance(around, ast.Subscript) and around.slice is value:
            return False
        if isinstance(around, (*_DISPLAYS, ast.Starred, ast.IfExp, ast.BoolOp, ast.Subscript)):
            return self.is_kept(scene, around)
        if isinstance(around, ast.Return):
            function = scene.function(around)
            sites = call_sites(scene, function) if function is not None else []
            return not sites or any(self.is_kept(scene_of(scene, f), c) for f, c, _ in sites)
        if isinstance(around, ast.For | ast.AsyncFor) and around.iter is value:
            return any(self._is_bound(scene, t, around) for t in names_of(around.target))
        if isinstance(around, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.withitem):
            targets = getattr(around, "targets", None) or [
                getattr(around, "target", None) or getattr(around, "optional_vars", None)
            ]
            places = (p for t in targets if t is not None for p in _parts(t))
            return any(self._is_bound(scene, p, scene.statement(value)) for p in places)
        return isinstance(around, ast.Yield | ast.YieldFrom | ast.Lambda | ast.NamedExpr)

    def _is_passed(self, scene: Scene, call: ast.Call, value: ast.expr) -> bool:
        name, graph = last_name(call.func), scene.inference.summaries.graph
        if name in _SHALLOW:
            return self.is_kept(scene, call)
        if name in MUTATING and name not in ("load_state_dict", "copy_", "update"):
            return self._is_bound(scene, call.func.value, scene.statement(call))  # type: ignore[attr-defined]
        kinds = scene.kind(call.func)
        if kinds and all(a.kind in ("ref", "method") and "torch." in a.name for a in kinds):
            return any(shares(a.name) for a in kinds) and self.is_kept(scene, call)
        found = graph.targets(scene.file, call, scene.function(call))
        known = {a.kind for a in kinds} <= {"ref", "foreign", "method", "builtin"}
        for function in found.functions:
            effects = scene.inference.summaries.of(function)
            given = list(arguments(function, call, found.bound))
            names = {p for p, v in given if v is value}
            returned = names & effects.returned
            if returned and not _hands_back(scene, function, returned, dict(given)):
                returned = set()
            if names & effects.escaping or (returned and self.is_kept(scene, call)):
                return True
        return found.unseen and not found.functions and not known

    def _is_bound(self, scene: Scene, target: ast.expr, at: ast.stmt) -> bool:
        """Return whether what a place takes is kept there, or by who reads the variable."""
        inner = target
        if isinstance(target, ast.Subscript) and is_all(scene.kind(target.value), "Tensor"):
            return False  # elements of a Tensor take the numbers
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        function = scene.function(at)
        if not isinstance(target, ast.Name) or function is None:
            return True
        name, facts = target.id, scene.facts
        if name not in function.stores or name in function.globals:
            return True  # an argument, or of somebody around
        if inner is not target and not all(map(_is_display, facts.values(target))):
            return True
        named = [n for n in function.nodes if isinstance(n, ast.Name) and n.id == name]
        read = [n for n in named if isinstance(n.ctx, ast.Load)]
        anew = [
            n
            for part in evaluated_behind(scene, at)
            for n in ast.walk(part)
            if stores_data(scene, n) or _rebinds(scene, n)
        ]
        if any(facts.carries(name, n, load) for n in anew for load in read):
            return True
        return any(self.is_kept(scene, n) for n in read)


def _hands_back(
    scene: Scene, function: Function, names: set[str], given: dict[str, ast.expr | None]
) -> bool:
    """Return whether a call may give one of its arguments back, as these are.

    It does not where all that returns it stands behind ``if other is None``, and other is a Tensor.
    """
    there = scene_of(scene, scene.inference.program.files[function.path])
    for name in (n for n in function.nodes if isinstance(n, ast.Name) and n.id in names):
        holder = there.parent(name)
        if isinstance(holder, ast.BinOp | ast.Compare | ast.Attribute):
            continue  # an operator makes a new tensor; METADATA and the like hand nothing on
        around = there.parent(holder) if isinstance(holder, ast.Return) else None
        test = around.test if isinstance(around, ast.If) and holder in around.body else None
        if (
            not isinstance(test, ast.Compare)
            or not isinstance(test.left, ast.Name)
            or not isinstance(test.ops[0], ast.Is)
            or ast.unparse(test.comparators[0]) != "None"
            or test.left.id in function.stores
            or {a.kind for a in scene.kind(given.get(test.left.id) or test)} != {"Tensor"}
        ):
            return True
    return False


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    """Yield the places that an assignment binds."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _parts(part)
    else:
        yield target.value if isinstance(target, ast.Starred) else target


def _is_display(value: ast.expr | None) -> bool:
    """Return whether a value is a new container."""
    made = isinstance(value, ast.Call) and last_name(value.func) in _CONTAINERS
    return made or isinstance(value, _DISPLAYS)


_CONTAINERS = ("dict", "list", "set", "OrderedDict", "defaultdict", "deque")
_SHALLOW = frozenset(
    "items values copy dict list tuple OrderedDict zip enumerate iter next reversed sorted".split()
)


def _copies(made: ast.AST | None) -> bool:
    """Return whether a comprehension holds what a call makes of each value."""
    held = getattr(made, "value", None) or getattr(made, "elt", None)
    return isinstance(held, (ast.Call, ast.BinOp))


def _rebinds(scene: Scene, node: ast.AST) -> bool:
    """Return whether a call runs what binds ``.data`` of something anew."""
    if not isinstance(node, ast.Call):
        return False
    summaries = scene.inference.summaries
    targets = summaries.graph.targets(scene.file, node, scene.function(node))
    return not summaries.bound(node, targets).attributes.isdisjoint(("data", ANY))


_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.GeneratorExp,
             ast.SetComp)  # fmt: skip


def stores_data(scene: Scene, node: ast.AST) -> bool:
    """Return whether a statement gives a Tensor other memory, as ``x.data -= y`` does not."""
    stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    anew = stored and not isinstance(scene.parent(node), ast.AugAssign)
    return anew and is_data(scene, node)


def names_of(target: ast.expr) -> list[ast.Name]:
    """Return the names in an expression."""
    return [n for n in ast.walk(target) if isinstance(n, ast.Name)]
