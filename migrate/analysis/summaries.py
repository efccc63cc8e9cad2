"""Effects of functions: what a call may write, mutate, rebind, return and keep.

The summaries are the least fixpoint over the strongly connected components of the call graph. An
attribute is identified by its name, whatever the object, so that an alias hides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

from migrate.analysis.callgraph import CONSTRUCTORS, CallGraph, Targets, components, own_nodes
from migrate.analysis.passing import (
    FRESH,
    SUPER,
    Given,
    Passing,
    Roots,
    names_in,
    passed,
)
from migrate.analysis.program import File, Function, Program
from migrate.analysis.storage import REGISTRIES
from migrate.syntax.trees import FUNCTIONS, all_parameters, last_name

ANY = "*"  # an attribute whose name is not written out
Scope = tuple[str, str]  # key of a function, or path of a module; name of the variable

# methods of containers that change what is in them; every ``name_`` of a Tensor does as well
MUTATING = frozenset(
    "append extend insert remove pop popitem clear update setdefault add discard sort reverse "
    "appendleft extendleft popleft rotate intersection_update difference_update "
    "symmetric_difference_update __setitem__ __delitem__ copy_ zero_ resize_ fill_ "
    "add_module register_module register_buffer register_parameter load_state_dict".split()
)
_REGISTERING = {"add_module": 0, "register_module": 0, "register_buffer": 0,
                "register_parameter": 0, "setattr": 1, "delattr": 1, "__setattr__": 0}  # fmt: skip


@dataclass(frozen=True)
class Effects:
    """What calling a function may do to what others see.

    ``attributes``: by parameter, the names of attributes bound or changed on it. ``elsewhere``: the
    same for objects that are no parameter. ``mutated``: parameters whose contents may change.
    ``rebound``: globals and nonlocals that are bound. ``returned``: parameters that the result may
    be, hold or share storage with. ``escaping``: parameters that are stored, captured, or given to
    code out of sight. ``unknown``: code out of sight may run; its effects (``Summaries.unseen``)
    come on top.
    """

    attributes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    mutated: frozenset[str] = frozenset()
    rebound: frozenset[Scope] = frozenset()
    returned: frozenset[str] = frozenset()
    escaping: frozenset[str] = frozenset()
    unknown: bool = False

    @cached_property
    def written(self) -> frozenset[str]:
        """The names of all attributes that a call may bind or change, on whatever object."""
        return self.elsewhere.union(*self.attributes.values())


NO_EFFECTS = Effects()


@dataclass(frozen=True)
class Changes:
    """The effects of one call on the scope of the call.

    ``attributes``: names of attributes, of any object; ANY stands for all. ``contents``: variables
    of the caller whose contents may change. ``rebound``: globals and nonlocals.
    """

    attributes: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()
    rebound: frozenset[Scope] = frozenset()

    def __or__(self, other: Changes) -> Changes:
        if other is NO_CHANGES or self is NO_CHANGES:
            return self if other is NO_CHANGES else other
        return Changes(
            _union(self.attributes, other.attributes),
            _union(self.contents, other.contents),
            _union(self.rebound, other.rebound),
        )


NO_CHANGES = Changes()
Member = TypeVar("Member")


def _union(first: frozenset[Member], second: frozenset[Member]) -> frozenset[Member]:
    """Return the union; one of the two itself where the other adds nothing to it."""
    if first is second or not second:
        return first
    return first | second if first else second


@dataclass
class _Total:
    """The effects of several calls, in the names of their caller, while they are added up."""

    attributes: dict[str, set[str]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    mutated: set[str] = field(default_factory=set)
    rebound: set[Scope] = field(default_factory=set)
    escaping: set[str] = field(default_factory=set)
    unknown: bool = False

    @classmethod
    def of(cls, own: Effects) -> _Total:
        attributes = {name: {*written} for name, written in own.attributes.items()}
        sets = {*own.elsewhere}, {*own.mutated}, {*own.rebound}, {*own.escaping}
        return cls(attributes, *sets, own.unknown)

    def add(self, effects: Effects, passing: Passing) -> None:
        """Add the effects of a callee."""
        self.elsewhere |= effects.elsewhere
        self.rebound |= effects.rebound
        self.unknown |= effects.unknown
        for parameter, (names, itself, held) in passing.values:
            written = effects.attributes.get(parameter)
            if written and itself:
                (name,) = names
                self.attributes.setdefault(name, set()).update(written)
            elif written:
                self.elsewhere |= written
            if parameter in effects.mutated:
                self.mutated |= names
                self.elsewhere |= held
            if parameter in effects.escaping:
                self.escaping |= names


@dataclass
class _Unit:
    """One function while its summary is solved: its own effects, its calls, its local aliases."""

    function: Function
    names: frozenset[str]  # of its parameters
    own: Effects = NO_EFFECTS
    calls: list[tuple[ast.Call, Targets]] = field(default_factory=list)
    passes: list[Passing] = field(default_factory=list)
    roots: dict[str, frozenset[str]] = field(default_factory=dict)
    used: dict[int, frozenset[str]] = field(default_factory=dict)
    results: list[ast.expr] = field(default_factory=list)


@dataclass(eq=False)
class Summaries:
    """The effects of every function of a program."""

    program: Program
    before: Summaries | None = None  # of a program of which most files are the same
    graph: CallGraph = field(init=False)
    _changes: dict[tuple[int, Targets], Changes] = field(default_factory=dict)
    _given: dict[int, Given] = field(default_factory=dict)
    _names: dict[int, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = CallGraph(self.program)

    def of(self, function: Function) -> Effects:
        """Return the effects of calling a function."""
        return self._solved[0].get(function.key, NO_EFFECTS)

    @property
    def unseen(self) -> Effects:
        """The effects of code out of sight: of all functions whose address is taken."""
        return self._solved[1]

    def bound(self, call: ast.Call, targets: Targets) -> Changes:
        """Return the effects of a call of known functions on the scope of the call."""
        if not targets.functions and not targets.unseen:
            return NO_CHANGES
        asked = id(call), targets
        known = self._changes.get(asked)
        if known is None:
            known = self._changes[asked] = self._bound(call, targets)
        return known

    def _bound(self, call: ast.Call, targets: Targets) -> Changes:
        total = _Total()
        for function in targets.functions:
            given = passed(function, call, targets, self._named, self._given)
            total.add(self.of(function), given)
        written = total.elsewhere.union(*total.attributes.values())
        changes = Changes(frozenset(written), frozenset(total.mutated), frozenset(total.rebound))
        if total.unknown or targets.unseen:
            unseen = self.unseen
            changes |= Changes(unseen.written, unseen.mutated, unseen.rebound)
        if targets.unseen:
            changes |= Changes(contents=_given(call, self._named))
        return changes

    def _named(self, node: ast.AST) -> frozenset[str]:
        return names_in(node, self._names) - {SUPER}

    def components(self) -> list[tuple[Function, ...]]:
        """Return the strongly connected components of the calls that are resolved, callees first.

        The order is that of the keys of the functions, wherever they stand.
        """
        numbers = sorted(range(len(self._units)), key=lambda i: self._units[i].function.key)
        edges = {
            i: sorted(
                (j for j in self._edges[i] if j < len(self._units)),
                key=lambda j: self._units[j].function.key,
            )
            for i in numbers
        }
        return [tuple(self._units[i].function for i in part) for part in components(edges)]

    def callees(self, function: Function) -> list[Function]:
        """Return the functions that one calls, as far as they are resolved."""
        edges = self._edges[self._numbers[id(function)]]
        return [self._units[i].function for i in edges if i < len(self._units)]

    # -- solving --------------------------------------------------------------------------------

    @cached_property
    def _units(self) -> list[_Unit]:
        known = {}
        if self.before is not None and self.before._properties.keys() == self._properties.keys():
            known = {id(unit.function): unit for unit in self.before._units}
        self.before = None
        found = []
        for file in self.program.files.values():
            for function in file.functions.values():
                unit = known.get(id(function))
                if unit is None or not self._calls_the_same(file, unit):
                    unit = self._scanned(file, function)
                found.append(unit)
        return found

    def _calls_the_same(self, file: File, unit: _Unit) -> bool:
        """Return whether the calls of a function may run what they might in another program."""
        for call, targets in unit.calls:
            if call.lineno:
                if self.graph.targets(file, call, unit.function) != targets:
                    return False
            elif self._read_as(call.func) != targets:
                return False
        return True

    def _read_as(self, node: ast.expr) -> Targets:
        """Return the properties that reading an attribute may run."""
        assert isinstance(node, ast.Attribute)
        return Targets(tuple(self._properties[node.attr]), bound=True)

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {id(u.function): i for i, u in enumerate(self._units)}

    @cached_property
    def _edges(self) -> dict[int, list[int]]:
        """By number of a unit, the units it may run; the last number is code out of sight."""
        numbers = self._numbers
        unseen = len(self._units)
        edges: dict[int, list[int]] = {}
        for index, unit in enumerate(self._units):
            found = [numbers[id(f)] for _, t in unit.calls for f in t.functions]
            found += [unseen] if unit.own.unknown else []
            edges[index] = list(dict.fromkeys(found))
        edges[unseen] = [numbers[id(f)] for f in self.graph.indirect]
        return edges

    @cached_property
    def _parts(self) -> list[list[int]]:
        return components(self._edges)

    @cached_property
    def _solved(self) -> tuple[dict[str, Effects], Effects]:
        found: dict[str, Effects] = {}
        out_of_sight = NO_EFFECTS
        for part in self._parts:
            callers: dict[int, list[int]] = {}
            for index in part:
                for callee in self._edges[index]:
                    callers.setdefault(callee, []).append(index)
            waiting = set(part)
            while waiting:
                for index in part:
                    if index not in waiting:
                        continue
                    waiting.remove(index)
                    if index == len(self._units):
                        new = self._seen_from_outside(found)
                        changed = new != out_of_sight
                        out_of_sight = new
                    else:
                        unit = self._units[index]
                        new = self._summary(unit, found)
                        changed = new != found.get(unit.function.key, NO_EFFECTS)
                        found[unit.function.key] = new
                    if changed:
                        waiting.update(callers.get(index, ()))
        return found, out_of_sight

    def _seen_from_outside(self, found: Mapping[str, Effects]) -> Effects:
        written: set[str] = set()
        rebound: set[Scope] = set()
        for function in self.graph.indirect:
            effects = found.get(function.key, NO_EFFECTS)
            first = function.parameters[:1]  # ``def __init__(*args)`` has none
            new = first[0].arg if first and function.name in CONSTRUCTORS else ""
            written.update(effects.elsewhere)
            written.update(*(names for p, names in effects.attributes.items() if p != new))
            rebound |= effects.rebound
        return Effects(elsewhere=frozenset(written), rebound=frozenset(rebound), unknown=True)

    def _summary(self, unit: _Unit, found: Mapping[str, Effects]) -> Effects:
        own, names = unit.own, unit.names
        called = [(found.get(p.function.key, NO_EFFECTS), p) for p in unit.passes]
        called = [(effects, passing) for effects, passing in called if effects is not NO_EFFECTS]
        if not called:
            return own
        total = _Total.of(own)
        for effects, passing in called:
            total.add(effects, passing)
        for name in total.attributes.keys() - names:
            total.elsewhere |= total.attributes.pop(name)
        return Effects(
            {n: frozenset(v) for n, v in total.attributes.items()},
            frozenset(total.elsewhere),
            frozenset(total.mutated & names),
            frozenset(r for r in total.rebound if r[0] != unit.function.key),
            own.returned & names,
            frozenset(total.escaping & names),
            total.unknown,
        )

    # -- one function ---------------------------------------------------------------------------

    def _scanned(self, file: File, function: Function) -> _Unit:
        """Collect what the body of a function does itself."""
        parameters = frozenset(a.arg for a in all_parameters(function.node.args))
        unit = _Unit(function, parameters, used=self._names)
        kinds = _TELLING | {ast.Name} if function.globals else _TELLING
        nodes = [n for n in own_nodes(function) if type(n) in kinds]
        unit.roots = {name: frozenset((name,)) for name in parameters}
        unit.roots[SUPER] = frozenset(a.arg for a in function.parameters[:1])
        _find_aliases(nodes, unit)
        if isinstance(function.node, ast.Lambda):
            unit.results.append(function.node.body)
        attributes: dict[str, set[str]] = {}
        elsewhere: set[str] = set()
        mutated: set[str] = set()
        escaping: set[str] = set()
        rebound: set[Scope] = set()
        unknown = False

        def written(holder: ast.expr, name: str) -> None:
            if isinstance(holder, ast.Name) and holder.id in parameters:
                attributes.setdefault(holder.id, set()).add(name)
            else:
                elsewhere.add(name)

        def changed(holder: ast.AST, attributes_too: bool = True) -> None:
            """The contents of a value change: of a parameter, or of what an attribute holds."""
            mutated.update(_roots(holder, unit))
            while attributes_too and isinstance(holder, (ast.Subscript, ast.Call, ast.Attribute)):
                if isinstance(holder, ast.Attribute):
                    written(holder.value, ANY if holder.attr in REGISTRIES else holder.attr)
                if isinstance(holder, ast.Call):
                    if getattr(holder.func, "id", "") == "vars":
                        elsewhere.add(ANY)
                    holder = getattr(holder.func, "value", holder.func)
                else:
                    holder = holder.value

        for node in nodes:
            if isinstance(node, ast.Attribute):
                if not isinstance(node.ctx, ast.Load):
                    written(node.value, node.attr)
                elif node.attr in self._properties:
                    call = ast.Call(node, [], [], lineno=0)
                    unit.calls.append((call, self._read_as(node)))
            elif isinstance(node, ast.Subscript):
                if not isinstance(node.ctx, ast.Load):
                    changed(node.value)
            elif isinstance(node, ast.AugAssign):
                changed(node.target, attributes_too=False)
            elif isinstance(node, ast.Name):
                if not isinstance(node.ctx, ast.Load) and node.id in function.globals:
                    rebound.add(_scope(function, node.id))
            elif isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)):
                if node.value is not None:
                    unit.results.append(node.value)
            elif isinstance(node, ast.Call):
                targets = self.graph.targets(file, node, function)
                unit.calls.append((node, targets))
                unknown |= targets.unseen or getattr(node.func, "id", "") in ("exec", "eval")
                self._library(node, targets, written, changed, escaping, unit)
                if targets.unseen:
                    mutated.update(_given(node, partial(_roots, unit=unit)))
            if isinstance(node, ast.Assign):
                if any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets):
                    escaping |= _roots(node.value, unit)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                captured = file.functions[id(node)]
                used = {n.id for n in captured.nodes if isinstance(n, ast.Name)}
                escaping |= frozenset().union(*(unit.roots.get(n, _NONE) for n in used))
        own_roots = partial(_roots, unit=unit)
        given: dict[int, Given] = {}
        unit.passes = list(dict.fromkeys(
            passed(f, call, targets, own_roots, given)
            for call, targets in unit.calls for f in targets.functions
        ))  # fmt: skip
        returned = frozenset().union(*(_roots(r, unit) for r in unit.results))
        unit.own = Effects(
            {n: frozenset(v) for n, v in attributes.items()},
            frozenset(elsewhere),
            frozenset(mutated),
            frozenset(rebound),
            returned & parameters,
            frozenset(escaping & parameters),
            unknown,
        )
        return unit

    def _library(self, node, targets, written, changed, escaping, unit) -> None:  # type: ignore[no-untyped-def]
        """Note what a call does to its receiver and arguments by the name of what is called."""
        func = node.func
        name = last_name(func)
        if isinstance(func, ast.Attribute) and name in MUTATING:
            changed(func.value, attributes_too=not name.endswith("_"))
        inplace = name.endswith("_") and not name.endswith("__")
        if inplace and isinstance(func, ast.Attribute):
            changed(func.value, attributes_too=False)
        if node.args and (inplace or any(k.arg == "inplace" for k in node.keywords)):
            changed(node.args[0], attributes_too=False)  # torch.relu_(x), init.normal_(w)
        for keyword in node.keywords:
            if keyword.arg == "out":
                changed(keyword.value, attributes_too=False)
        if name in _REGISTERING and len(node.args) > _REGISTERING[name]:
            key = node.args[_REGISTERING[name]]
            holder = func.value if isinstance(func, ast.Attribute) else node.args[0]
            known = isinstance(key, ast.Constant) and isinstance(key.value, str)
            written(holder, key.value if known else ANY)
        if not targets.functions and name not in FRESH:
            escaping |= _given(node, partial(_roots, unit=unit))

    @cached_property
    def _properties(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for owner in self.program.classes.values():
            for name, method in owner.methods.items():
                if method.decorated("property", "cached_property"):
                    found.setdefault(name, []).append(method)
        return found


# the nodes that say what a function does; names do where some are global
_TELLING = frozenset((
    ast.Call, ast.Attribute, ast.Assign, ast.Subscript, ast.Return, ast.AugAssign, ast.AnnAssign,
    ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension, ast.withitem, ast.Yield,
    ast.YieldFrom, *FUNCTIONS,
))  # fmt: skip
_NONE: frozenset[str] = frozenset()


def _scope(function: Function, name: str) -> Scope:
    """Return the scope that ``global`` or ``nonlocal`` of a name means."""
    around = function.parent
    for node in own_nodes(function):
        if isinstance(node, ast.Global) and name in node.names:
            return function.path, name
    while around is not None:
        if name in around.locals:
            return around.key, name
        around = around.parent
    return function.path, name


def _find_aliases(nodes: list[ast.AST], unit: _Unit) -> None:
    """Find the parameters that each local variable may be, hold, or be part of."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            pairs += [(t, node.value) for t in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            pairs.append((node.target, node.value))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            pairs.append((node.target, node.iter))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            pairs.append((node.optional_vars, node.context_expr))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend", "insert", "add", "update")
        ):
            pairs += [(node.func.value, a) for a in node.args]
    changed = bool(pairs)
    while changed:
        changed = False
        for target, value in pairs:
            roots = _roots(value, unit)
            if not roots:
                continue
            for name in _bound(target):
                known = unit.roots.get(name, _NONE)
                if not roots <= known:
                    unit.roots[name] = known | roots
                    changed = True


def _bound(target: ast.AST) -> Iterator[str]:
    """Yield the variables that a target binds or puts something into."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _bound(item)
    elif isinstance(target, (ast.Starred, ast.Attribute, ast.Subscript)):
        yield from _bound(target.value)


def _roots(node: ast.AST, unit: _Unit) -> frozenset[str]:
    """Return the parameters that a value may be, hold, or be part of."""
    found = _NONE
    for name in names_in(node, unit.used):
        own = unit.roots.get(name)
        if own:
            found = found | own if found else own
    return found


def _given(call: ast.Call, roots: Roots) -> frozenset[str]:
    found = _NONE
    for value in (*call.args, *(k.value for k in call.keywords)):
        found |= roots(value)
    return found
