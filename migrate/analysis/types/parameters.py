"""Kinds of parameters: as annotated, as passed by every call of the program, as defaulted."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import is_
from typing import TYPE_CHECKING

from migrate.analysis import callgraph
from migrate.analysis.callgraph import CONSTRUCTORS, own_nodes
from migrate.analysis.program import Function
from migrate.analysis.types import contents, parametric, values
from migrate.analysis.types.kinds import (
    CONTEXT,
    MODULE,
    NOTHING,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    element,
    indirect,
    is_all,
    join,
    kind,
    sequence,
    unknown_but_for,
    without_none,
)
from migrate.analysis.types.units import Unit
from migrate.syntax.trees import last_name

if TYPE_CHECKING:
    from migrate.analysis.types.inference import Inference

Passed = Mapping[str, Kind]
# the kinds of the parts of a call, and what it passes then
_Noted = tuple[tuple[Kind | None, ...], list[tuple[Function, Passed]]]
_MORE = "*"  # bound to *args
_NAMED = "**"  # bound to **kwargs, followed by the name
# there if some call unpacks, or code out of sight passes, what is not known: by place, by name
_UNSEEN = "?"
_UNSEEN_NAMES = "??"
# foreign functions that only pass on an argument, or return it
_HANDING_ON = ("functools.", "copy.", "typing.", "types.MethodType", "dataclasses.")
_ON_ELEMENTS = ("map", "filter", "sorted", "min", "max")


@dataclass(frozen=True)
class _Target:
    """A function that a call may run: ``shift`` of its parameters are bound before."""

    function: Function
    shift: int
    arguments: Sequence[ast.expr]


@dataclass(eq=False)
class Parameters:
    """What the units pass to functions: each unit's last walk replaces what it passed before."""

    world: Inference
    _passes: dict[Function, dict[Unit, Passed]] = field(default_factory=dict)
    _passing: dict[Unit, dict[Function, Passed]] = field(default_factory=dict)
    _given: dict[Unit, dict[Function, Passed]] = field(default_factory=dict)
    _finished: dict[Unit, dict[Function, None]] = field(default_factory=dict)
    _noted: dict[Unit | None, dict[int, _Noted]] = field(default_factory=dict)

    # -- what a function gets -------------------------------------------------------------------

    def of(self, function: Function) -> dict[str, Kind]:
        """Return the kinds of the parameters; nothing for what no call has passed so far."""
        arguments = function.node.args
        positional = function.parameters
        defaults = function.defaults
        passed: Passed = self.world._ask(("passed", function), dict)
        found: dict[str, Kind] = {}
        for index, arg in enumerate((*positional, *arguments.kwonlyargs)):
            if index == self._context(function):
                found[arg.arg] = CONTEXT
            elif index == 0 and function.owner and not function.decorated("staticmethod"):
                found[arg.arg] = self._self(function)
            else:
                default = defaults.get(arg.arg)
                found[arg.arg] = self._parameter(function, arg, index, default, passed)
        if arguments.vararg is not None:
            each = self._written(function, arguments.vararg.annotation)
            each = passed.get(_MORE, UNKNOWN) if each == UNKNOWN else each
            found[arguments.vararg.arg] = sequence("tuple", each)
        if arguments.kwarg is not None:
            found[arguments.kwarg.arg] = kind("dict", "", UNKNOWN)
        return found

    def default(self, function: Function, name: str) -> ast.expr | None:
        """Return the default of a parameter."""
        return function.defaults.get(name)

    def passed(self, function: Function) -> dict[str, Kind]:
        """Return what all calls pass together, by parameter."""
        found: dict[str, Kind] = {}
        for some in self._passes.get(function, {}).values():
            for name, value in some.items():
                known = found.get(name, NOTHING)
                if known is not value:
                    found[name] = join(known, value)
        return found

    def assumed(self, function: Function, shown: Mapping[str, Kind]) -> dict[int, str]:
        """Return the assumptions about parameters whose kinds come from calls in the project alone.

        They are keyed by the id of the attribute that is read of one; public functions only.
        """
        owner = function.owner
        if function.name.startswith("_") or (owner is not None and owner.name.startswith("_")):
            return {}
        passed: Passed = self.world._ask(("passed", function), dict)
        free = {a.arg for a in _open(function) if a.annotation is None and a.arg in passed}
        free -= shown.keys() | function.stores.keys()
        if not free or self._is_forward(function):
            return {}
        why = "is what the callers in the project pass, which may not be all"
        return {
            id(n): f"{n.value.id} {why}"
            for n in function.nodes
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in free
        }

    def may_be_called(self, function: Function) -> bool:
        """Whether some call of the program may mean a function, by its name."""
        names = {function.name, self._bound_as(function)} - {"", "<lambda>"}
        if function.owner is not None and function.name in CONSTRUCTORS:
            family = (function.owner, *self.world.summaries.graph.derived(function.owner))
            return not self._mentioned.isdisjoint(c.name for c in family)
        return not names.isdisjoint(self.world.program.calls)

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """The names that are read anywhere, bases of classes apart."""
        found: set[str] = set()
        for file in self.world.program.files.values():
            bases = {id(b) for c in file.classes.values() for b in c.node.bases}
            found.update(n.id for n in file.of(ast.Name) if id(n) not in bases)
            found.update(n.attr for n in file.of(ast.Attribute) if id(n) not in bases)
        return frozenset(found)

    def _written(self, function: Function, annotation: ast.expr | None) -> Kind:
        if annotation is None:
            return UNKNOWN
        found = self.world.node_kind(self.world.index.around(function), annotation)
        return values.resolved(found or UNKNOWN, self.world)

    def _self(self, function: Function) -> Kind:
        owner = function.owner
        assert owner is not None
        if function.decorated("classmethod") or function.name == "__new__":
            return kind("class", owner.key)
        return values.instance_of(Atom("class", owner.key), (), self.world)

    def _parameter(
        self,
        function: Function,
        arg: ast.arg,
        index: int,
        default: ast.expr | None,
        passed: Passed,
    ) -> Kind:
        written = self._written(function, arg.annotation)
        if written != UNKNOWN and not any(a.kind in ("callable", "Module") for a in written):
            number = is_all(written, "int", "float", "None")  # layers take (2, 1) beside it
            many = (a for a in passed.get(arg.arg, NOTHING) if a.kind in ("list", "tuple"))
            return join(written, frozenset(many)) if number else written
        value = NOTHING
        if default is not None:
            found = self.world.node_kind(self.world.index.around(function), default)
            value = indirect(found) if found is not None else UNKNOWN
            if site := parametric.default_site(function, arg.arg):
                value = contents.with_more(value, self.world.put(site))
        called = passed.get(arg.arg, NOTHING)
        joined = join(called, value)
        if without_none(joined) and UNKNOWN.isdisjoint(joined):
            return joined
        if written != UNKNOWN:
            return join(written, without_none(joined - UNKNOWN))
        if index == _first(function) and default is None and self._is_applied(function):
            return MODULE
        if self._is_gradient(function, index):
            return TENSOR
        if self._is_forward(function) and unknown_but_for(TENSOR, joined):
            if arg.arg in self.world._elimination.unlike_tensors(function):
                return join(joined, UNKNOWN)
            return TENSOR if default is None else join(TENSOR, value - UNKNOWN)
        if function in self.world._open and not called:
            return join(joined, UNKNOWN)
        return joined

    def _is_gradient(self, function: Function, index: int) -> bool:
        """Whether the backward of a torch.autograd.Function gets it."""
        return function.name == "backward" and -1 < self._context(function) < index

    def _context(self, function: Function) -> int:
        """Return which parameter of a method of a torch.autograd.Function is its ctx, or -1."""
        owner = function.owner
        return function.context if owner and self.world.is_function(owner.key) else -1

    def _is_forward(self, function: Function) -> bool:
        return (
            function.name == "forward"
            and function.owner is not None
            and self.world.is_module(function.owner.key)
        )

    def _is_applied(self, function: Function) -> bool:
        """Return whether a function is an argument of ``module.apply``."""
        return function.name in self._applied

    @cached_property
    def _applied(self) -> frozenset[str]:
        found = set()
        for _, call, _ in self.world.program.calls.get("apply", ()):
            last = call.args[0] if len(call.args) == 1 else None
            found.add(last_name(last))
        return frozenset(found)

    def _bound_as(self, function: Function) -> str:
        """The variable that a lambda is bound to: ``halve = lambda x: x / 2``."""
        if not isinstance(function.node, ast.Lambda):
            return ""
        around = self.world.program.files[function.path].parents.get(id(function.node))
        targets = around.targets if isinstance(around, ast.Assign) else ()
        return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""

    # -- what a unit passes ---------------------------------------------------------------------

    def note(self, call: ast.Call) -> None:
        """Record the arguments of a call that was just evaluated; its unit may pass more later."""
        unit = self.world.unit
        if unit is not None:
            for function, given in self._passed_by(call):
                self._pass(unit, function, given)

    def _passed_by(self, call: ast.Call) -> list[tuple[Function, Passed]]:
        """Return what an evaluated call passes to each function that it may run.

        What was found for the call before holds as long as its parts have the kinds they had.
        """
        kinds = self.world.kinds
        if not may_run(kinds.get(id(call.func), NOTHING)):
            return []
        parts: tuple[ast.expr, ...] = (call.func, *call.args, *(k.value for k in call.keywords))
        if isinstance(call.func, ast.Attribute):
            parts = (call.func.value, *parts)
        known = tuple(kinds.get(id(p)) for p in parts)
        noted = self._noted.setdefault(self.world.unit, {})
        before = noted.get(id(call))
        if before is not None and all(map(is_, known, before[0])):
            return before[1]
        found = [(t.function, self._bind(t, call)) for t in self._targets(call)]
        noted[id(call)] = known, found
        return found

    def give(self, function: Function, given: Mapping[str, Kind]) -> None:
        """Record the arguments that the current unit lets unseen code call a function with."""
        unit = self.world.unit
        if unit is not None:
            some = self._given.setdefault(unit, {})
            some[function] = _joined(some.get(function, {}), given)
            self._pass(unit, function, given)

    def _pass(self, unit: Unit, function: Function, given: Passed) -> None:
        now = self._passing.setdefault(unit, {})
        now[function] = _joined(now.get(function, {}), given)
        self._put(unit, function, _joined(self._passes.get(function, {}).get(unit, {}), given))

    def _put(self, unit: Unit, function: Function, given: Passed | None) -> None:
        known = self._passes.setdefault(function, {})
        if given is None:
            known.pop(unit, None)
        elif (before := known.get(unit)) is given or before == given:
            return
        else:
            known[unit] = given
        self.world.invalidate("passed", function)

    def finish(self, unit: Unit) -> None:
        """Replace what a unit passes by what its walk, now at its end, has found."""
        found: dict[Function, Passed] = dict(self._given.pop(unit, {}))
        for call in self.world.index.calls(unit):
            for function, bound in self._passed_by(call):
                found[function] = _joined(found.get(function, {}), bound)
            for function, given in self._out_of_sight(call):
                found[function] = _joined(found.get(function, {}), given)
        for function in self.world.index.functions(unit):
            for wrapper, given in self._wrapping(function, unit):
                found[wrapper] = _joined(found.get(wrapper, {}), given)
        before = self._passing.pop(unit, {})
        for function in {**before, **self._finished.get(unit, {})}:
            if function not in found:
                self._put(unit, function, None)
        for function, given in found.items():
            self._put(unit, function, given)
        self._finished[unit] = dict.fromkeys(found)
        self._noted.pop(unit, None)

    def renewed(self, gone: Collection[Unit]) -> Parameters:
        """Return the same for a program without some units, whose callees are invalidated."""
        for unit in gone:
            for function in self._finished.pop(unit, ()):
                self._passes.get(function, {}).pop(unit, None)
        for unit, functions in self._finished.items():
            if not functions.keys().isdisjoint(gone):
                self.world.invalidate("walk", unit)
                self._finished[unit] = {f: None for f in functions if f not in gone}
        passes = {f: some for f, some in self._passes.items() if f not in gone}
        return Parameters(self.world, passes, _finished=self._finished)

    # -- calls ----------------------------------------------------------------------------------

    def _targets(self, call: ast.Call) -> Iterator[_Target]:
        """Yield the functions of the project that an evaluated call may run."""
        for atom in self.world.kinds.get(id(call.func), NOTHING):
            if atom.kind == "ref":
                if atom.name in parametric.CALLERS and call.args:
                    handed = self.world.kinds.get(id(call.args[0]), NOTHING)
                    for inner in handed:
                        yield from self._run(inner, call, call.args[1:], handed=True)
            else:
                yield from self._run(atom, call, call.args)

    def _run(
        self, atom: Atom, call: ast.Call, args: Sequence[ast.expr], handed: bool = False
    ) -> Iterator[_Target]:
        world = self.world
        if atom.kind in ("function", "method"):
            function = world.function_of(atom.name)
            if function is None:
                return
            receiver = NOTHING
            if isinstance(call.func, ast.Attribute) and not handed:
                receiver = world.kinds.get(id(call.func.value), NOTHING)
            of_class = bool(receiver) and all(a.kind == "class" for a in receiver)
            shift = int(function.owner is not None and not function.decorated("staticmethod"))
            if of_class and shift and not function.decorated("classmethod"):
                shift = 0
            if getattr(call.func, "attr", "") == "apply" and self._context(function) >= 0:
                shift = self._context(function) + 1
            if function.owner is None and any(a.kind in ("Module", "Object") for a in receiver):
                shift = 1  # Net.forward = f
            exact = of_class or any(a.kind == "super" for a in receiver)
            for one in (function,) if exact else world.overriding(function):
                yield _Target(one, shift, args)
        elif atom.kind == "class":
            for name in CONSTRUCTORS:
                for member in world.member(atom.name, name):
                    function = world.function_of(member.name)
                    if member.kind == "method" and function is not None:
                        yield _Target(function, 1, args)
        elif atom.kind in ("Module", "Object") and "::" in atom.name:
            for name in ("forward", "__call__") if atom.kind == "Module" else ("__call__",):
                for member in world.member(atom.name, name):
                    function = world.function_of(member.name)
                    if function is not None:
                        for one in world.overriding(function):
                            yield _Target(one, 1, args)
        elif atom.kind == "partial":
            for item in atom.items:
                for inner in item:
                    yield from self._run(inner, call, args, handed=True)

    def _bind(self, target: _Target, call: ast.Call) -> Passed:
        """Return what a call passes for each parameter."""
        kinds, node = self.world.kinds, target.function.node.args
        names = [a.arg for a in target.function.parameters][target.shift :]
        found: dict[str, Kind] = {}
        for index, arg in enumerate(target.arguments):
            value = indirect(kinds.get(id(arg), NOTHING))
            if isinstance(arg, ast.Starred):
                extras = self._own_extras(arg)
                if extras is None or index < len(target.arguments) - 1:
                    rest = target.arguments[index + 1 :]
                    others = [indirect(kinds.get(id(a), NOTHING)) for a in rest]
                    each = join(element(value), *others)
                    found |= {n: join(found.get(n, NOTHING), each) for n in (*names[index:], _MORE)}
                    found[_UNSEEN] = UNKNOWN
                    break
                place = 0
                while f"{_MORE}{place}" in extras:
                    self._place(found, names, index + place, extras[f"{_MORE}{place}"])
                    place += 1
                break
            self._place(found, names, index, value)
        known = {*names, *(a.arg for a in node.kwonlyargs)}
        for keyword in call.keywords:
            if keyword.arg is not None:
                name = keyword.arg if keyword.arg in known else f"{_NAMED}{keyword.arg}"
                value = indirect(kinds.get(id(keyword.value), NOTHING))
                found[name] = join(found.get(name, NOTHING), value)
                continue
            extras = self._own_extras(keyword)
            if extras is None:
                found |= dict.fromkeys((*(known - found.keys()), _UNSEEN_NAMES), UNKNOWN)
                continue
            for extra, value in extras.items():
                if extra.startswith(_NAMED):
                    name = extra.removeprefix(_NAMED)
                    name = name if name in known else extra
                    found[name] = join(found.get(name, NOTHING), value)
        if len(found) > 1 and contents.share(found.values()):
            found[parametric.SHARED] = UNKNOWN
        return found

    @staticmethod
    def _place(found: dict[str, Kind], names: Sequence[str], index: int, value: Kind) -> None:
        """Note what is passed at a place, behind the last parameter also by its number there."""
        if index < len(names):
            found[names[index]] = join(found.get(names[index], NOTHING), value)
        else:
            found[_MORE] = join(found.get(_MORE, NOTHING), value)
            found[f"{_MORE}{index - len(names)}"] = value

    def _own_extras(self, node: ast.Starred | ast.keyword) -> Passed | None:
        """What callers pass on through ``*args`` or ``**kwargs`` of the function that is walked.

        By place and by name; None where that is not known, or something else is unpacked.
        """
        unit = self.world.unit
        if not isinstance(node.value, ast.Name) or not isinstance(unit, Function):
            return None
        arguments = unit.node.args
        some = arguments.vararg if isinstance(node, ast.Starred) else arguments.kwarg
        if some is None or some.arg != node.value.id or unit in self.world._open:
            return None
        if some.arg in unit.stores:
            return None
        if isinstance(node, ast.keyword) and some.arg in self.world.effects(unit).mutated:
            return None  # the dict; a tuple stays what it is
        passed: Passed = self.world._ask(("passed", unit), dict)
        unseen = _UNSEEN if isinstance(node, ast.Starred) else _UNSEEN_NAMES
        return None if unseen in passed else passed

    # -- functions that are called out of sight -------------------------------------------------

    def _out_of_sight(self, call: ast.Call) -> Iterator[tuple[Function, Passed]]:
        """Yield the functions that a call passes to unseen code, with their arguments there."""
        kinds = self.world.kinds
        values = [*call.args, *(k.value for k in call.keywords)]
        code = [v for v in values if is_code(kinds.get(id(v), NOTHING))]
        callee = kinds.get(id(call.func), UNKNOWN) if code else NOTHING
        if all(a.kind in ("function", "class", "super", "Object") for a in callee):
            return
        if any(a.kind == "method" and "::" in a.name for a in callee):
            return
        last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        for node in code:
            for atom in kinds[id(node)]:
                function = self._function(atom)
                if function is None or self._hands_on(callee, call):
                    continue
                if last == "apply" and not any(a.kind == "foreign" for a in callee):
                    yield function, {a.arg: MODULE for a in _open(function)[:1]}
                elif any(a.kind == "builtin" and a.name in _ON_ELEMENTS for a in callee):
                    others = [a for a in call.args if a is not node]
                    each = [element(self._in_the_end(a)) for a in others]
                    yield function, dict(zip([a.arg for a in _open(function)], each, strict=False))
                else:
                    yield function, _anything(function)

    def _in_the_end(self, node: ast.expr) -> Kind:
        """Return an argument with all that its unit puts in: ``map`` looks at it later."""
        value = self.world.kinds.get(id(node), UNKNOWN)
        flow = self.world._flows.get(self.world.unit or "")
        return flow.seen_from_outside(value) if flow is not None else value

    def _hands_on(self, callee: Kind, call: ast.Call) -> bool:
        """Return whether a callee only stores the function or returns it."""
        return all(
            (a.kind == "foreign" and a.name.startswith(_HANDING_ON))
            or (a.kind == "ref" and a.name in (*parametric.WRAPPING, *parametric.CALLERS))
            or (a.kind == "builtin" and a.name not in _ON_ELEMENTS)
            or (a.kind == "method" and a.name.startswith(("list.", "dict.")))
            for a in callee
        )

    def _function(self, atom: Atom) -> Function | None:
        return self.world.function_of(atom.name) if atom.kind in ("function", "method") else None

    # -- decorators -----------------------------------------------------------------------------

    def is_replaced(self, function: Function) -> bool:
        """Whether a decorator may put something else in the place of a function."""
        return callgraph.is_replaced(function)

    def _decorators(self, function: Function) -> Iterator[tuple[ast.expr, Kind]]:
        """Yield the decorators that may change a function, with their kinds."""
        unit = self.world.index.around(function)
        for node in getattr(function.node, "decorator_list", ()):
            if not callgraph.keeps(node):
                yield node, self.world.node_kind(unit, node) or UNKNOWN

    def _wrapping(self, function: Function, unit: Unit) -> Iterator[tuple[Function, Passed]]:
        """Yield what decorators get: the function; and the function, if they call it unseen."""
        if not self.is_replaced(function):
            return
        for node in getattr(function.node, "decorator_list", ()):
            if callgraph.keeps(node):
                continue
            for atom in self.world.kinds.get(id(node), UNKNOWN):
                wrapper = self._function(atom)
                if wrapper is not None:
                    first = _open(wrapper)[:1]
                    yield wrapper, {a.arg: kind("function", function.key) for a in first}
                elif atom.kind not in ("ref", "class"):
                    yield function, _anything(function)

    def decorated_result(self, function: Function, result: Kind) -> Kind:
        """Return the result of a decorated function."""
        for _, found in self._decorators(function):
            for atom in found:
                wrapper = self._function(atom)
                if wrapper is None:
                    if atom.kind != "ref":
                        return UNKNOWN
                    continue
                given = self._wrapped(wrapper)
                if given is None:
                    return UNKNOWN
                result = join(result, given)
        return result

    def _wrapped(self, wrapper: Function) -> Kind | None:
        """Return the result of the function that a decorator of the project makes of another one.

        Nothing if it is that of the decorated function, which is returned or called by the wrapper.
        """
        first = [a.arg for a in _open(wrapper)[:1]]
        returns = [n.value for n in own_nodes(wrapper) if isinstance(n, ast.Return)]
        made: list[Function] = []
        for value in returns:
            name = getattr(value, "id", "")
            if [name] == first:
                continue
            inner = [f for f in self.world.index.functions(wrapper) if f.name == name]
            if not inner:
                return None
            made += inner
        found = NOTHING
        for function in made:
            results = [n.value for n in own_nodes(function) if isinstance(n, ast.Return)]
            calls = [r for r in results if isinstance(r, ast.Call)]
            if len(calls) < len(results) or any(
                [getattr(c.func, "id", "")] != first for c in calls
            ):
                found = join(found, self.world.returns(function))
        return found


@lru_cache(maxsize=1 << 14)
def is_code(value: Kind) -> bool:
    """Return whether a value may be a function or a bound method."""
    return any(a.kind in ("function", "method") for a in value)


@lru_cache(maxsize=1 << 14)
def may_run(callee: Kind) -> bool:
    """Return whether a call may run functions of the project, by the kind of what is called."""
    return any(
        a.name in parametric.CALLERS if a.kind == "ref" else "::" in a.name or a.kind == "partial"
        for a in callee
    )


def _first(function: Function) -> int:
    """The number of its first parameter but ``self``."""
    return int(function.owner is not None and not function.decorated("staticmethod"))


def _open(function: Function) -> list[ast.arg]:
    """The parameters but ``self``."""
    return [*function.parameters[_first(function) :], *function.node.args.kwonlyargs]


def _anything(function: Function) -> dict[str, Kind]:
    """What code out of sight may pass to a function."""
    return {**{a.arg: UNKNOWN for a in _open(function)}, _UNSEEN: UNKNOWN, _UNSEEN_NAMES: UNKNOWN}


def _joined(old: Passed, new: Passed) -> Passed:
    """Return what is passed by either; the very same mapping where the new one adds nothing."""
    if not old or old is new:
        return new
    found: dict[str, Kind] = {}
    for name, value in new.items():
        known = old.get(name, NOTHING)
        if known is not value and (both := join(known, value)) != known:
            found[name] = both
    return {**old, **found} if found else old
