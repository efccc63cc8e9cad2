"""In: a function of the project. Out: the kinds of its parameters, as written and as called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from migrate.program import Class, File, Function
from migrate.receivers import values
from migrate.receivers.annotations import annotated
from migrate.receivers.kinds import (
    MODULE,
    NOTHING,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    indirect,
    join,
    kind,
    sequence,
    unknown_but_for,
    without_none,
)
from migrate.receivers.world import World

MAX_CALL_SITES = 40


@dataclass(eq=False)
class Parameters:
    """Answers what a parameter is; it notes the calls of instances and what lambdas are given."""

    world: World
    _module_calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    _given: dict[int, dict[str, Kind]] = field(default_factory=dict)

    def note_call(self, key: str, call: ast.Call) -> None:
        """An instance of the class is called here: its forward gets these arguments."""
        if "::" in key and call not in self._module_calls.setdefault(key, []):
            self._module_calls[key].append(call)

    def give(self, function: Function, given: dict[str, Kind]) -> None:
        """Parameters of a lambda are known from where it is called."""
        known = self._given.setdefault(id(function), {})
        for name, value in given.items():
            known[name] = join(known.get(name, NOTHING), value)

    def of(self, function: Function, calls: bool = True) -> dict[str, Kind]:
        """The kinds of the parameters: annotation, call sites, default, or what forward takes."""
        arguments = function.node.args
        found: dict[str, Kind] = {}
        positional = function.parameters
        defaults = dict(
            zip([a.arg for a in positional][::-1], arguments.defaults[::-1], strict=False)
        )
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[arg.arg] = default
        for index, arg in enumerate((*positional, *arguments.kwonlyargs)):
            if index == 0 and function.owner is not None and not function.decorated("staticmethod"):
                found[arg.arg] = self._self(function)
            else:
                found[arg.arg] = self._parameter(function, arg, index, defaults.get(arg.arg), calls)
        if arguments.vararg is not None:
            each = self._written(arguments.vararg.annotation)
            found[arguments.vararg.arg] = sequence("tuple", each)
        if arguments.kwarg is not None:
            found[arguments.kwarg.arg] = kind("dict", "", UNKNOWN)
        return found

    def _written(self, annotation: ast.expr | None) -> Kind:
        return values.resolved(annotated(annotation, self.world.kinds), self.world)

    def _self(self, function: Function) -> Kind:
        assert function.owner is not None
        if function.decorated("classmethod"):
            return kind("class", function.owner.key)
        return values.instance_of(Atom("class", function.owner.key), (), self.world)

    def _parameter(
        self,
        function: Function,
        arg: ast.arg,
        index: int,
        default: ast.expr | None,
        calls: bool,
    ) -> Kind:
        known = self._given.get(id(function), {}).get(arg.arg)
        if known is not None:
            return known
        if arg.annotation is not None:
            if id(arg.annotation) not in self.world.kinds and function.parent is None:
                self.world.module(function.path)
            written = self._written(arg.annotation)
            if written != UNKNOWN and not any(a.kind in ("callable", "Module") for a in written):
                return written
        else:
            written = UNKNOWN
        value = (
            indirect(self.world.kinds.get(id(default), UNKNOWN)) if default is not None else NOTHING
        )
        called = self._from_calls(function, arg.arg, index) if calls else NOTHING
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
            return TENSOR if default is None else join(TENSOR, value - UNKNOWN)
        return joined or UNKNOWN

    def _is_gradient(self, function: Function, index: int) -> bool:
        """Whether the backward of a torch.autograd.Function gets it."""
        owner = function.owner if function.name == "backward" and index else None
        return owner is not None and self.world.is_function(owner.key)

    def _is_forward(self, function: Function) -> bool:
        return (
            function.name == "forward"
            and function.owner is not None
            and self.world.is_module(function.owner.key)
        )

    def _is_applied(self, function: Function) -> bool:
        """Whether a function is given to ``module.apply``."""
        for _, call, _ in self.world.program.calls.get("apply", ()):
            last = call.args[0] if len(call.args) == 1 else None
            name = last.attr if isinstance(last, ast.Attribute) else getattr(last, "id", "")
            if name == function.name:
                return True
        return False

    def _from_calls(self, function: Function, name: str, index: int) -> Kind:
        """What the calls in the project pass for a parameter."""
        called_as = self._bound_as(function) or function.name
        shift = 0
        if function.owner is not None and not function.decorated("staticmethod"):
            shift = 1
            if called_as == "__init__":
                called_as = function.owner.name
            elif called_as in ("forward", "__call__"):
                self._walk_holders(function.owner)
                calls = self._module_calls.get(function.owner.key, ())[:MAX_CALL_SITES]
                return join(*(self._passed(call, name, index - shift) for call in calls))
        elif function.name == "forward" and index and self._is_autograd(function):
            called_as, shift = "apply", 1
        found: list[Kind] = []
        for file, call, caller in islice(self._sites(function.path, called_as), MAX_CALL_SITES):
            if self._means(file, call, caller, function):
                found.append(self._passed(call, name, index - shift))
        return join(*found)

    def _bound_as(self, function: Function) -> str:
        """The variable that a lambda is bound to: ``halve = lambda x: x / 2``."""
        if not isinstance(function.node, ast.Lambda):
            return ""
        around = self.world.program.files[function.path].parents.get(id(function.node))
        targets = around.targets if isinstance(around, ast.Assign) else ()
        return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""

    def _sites(self, path: str, called_as: str) -> Iterator[tuple[File, ast.Call, Function | None]]:
        """The calls of a name, those of one file first: many files may call something ``train``."""
        file = self.world.program.files[path]
        yield from ((file, call, caller) for call, caller in file.calls.get(called_as, ()))
        for site in self.world.program.calls.get(called_as, ()):
            if site[0] is not file:
                yield site

    def _walk_holders(self, owner: Class) -> None:
        """The forwards of the classes that build this one: they call its instances."""
        for _, _, caller in self.world.program.calls.get(owner.name, ())[:MAX_CALL_SITES]:
            holder = caller.owner if caller is not None else None
            forward = holder.methods.get("forward") if holder is not None else None
            if forward is not None and holder is not owner:
                self.world.flow(forward)

    def _means(
        self, file: File, call: ast.Call, caller: Function | None, function: Function
    ) -> bool:
        """Whether a call is one of this very function."""
        if caller is not None:
            self.world.flow(caller)
        else:
            self.world.module(file.path)
        keys = {a.name for a in self.world.kinds.get(id(call.func), NOTHING)}
        owner = function.owner.key if function.owner is not None else ""
        return function.key in keys or (function.name == "__init__" and owner in keys)

    def _is_autograd(self, function: Function) -> bool:
        """Whether it is the forward of a torch.autograd.Function, which ``apply`` calls."""
        return function.owner is not None and self.world.is_function(function.owner.key)

    def _passed(self, call: ast.Call, name: str, index: int) -> Kind:
        if any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
            return UNKNOWN
        for keyword in call.keywords:
            if keyword.arg == name:
                return indirect(self.world.kinds.get(id(keyword.value), NOTHING))
        if 0 <= index < len(call.args):
            return indirect(self.world.kinds.get(id(call.args[index]), NOTHING))
        return UNKNOWN if any(k.arg is None for k in call.keywords) else NOTHING


def _first(function: Function) -> int:
    """The number of its first parameter but ``self``."""
    return int(function.owner is not None and not function.decorated("staticmethod"))
