"""In: a program and the table. Out: the kind of every expression of every file."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from migrate.analysis.cfg import Graph, Unit, graph_of
from migrate.analysis.facts import Facts
from migrate.analysis.summaries import Changes, Effects, Summaries
from migrate.names import covered_roots
from migrate.program import Class, Function, Program
from migrate.receivers import changes, importing, values
from migrate.receivers.annotations import annotated
from migrate.receivers.captured import Captured, captured
from migrate.receivers.classes import Classes
from migrate.receivers.elimination import Elimination, Question
from migrate.receivers.flow import Flow
from migrate.receivers.kinds import (
    NONE,
    NOTHING,
    STR,
    UNKNOWN,
    Atom,
    Kind,
    join,
)
from migrate.receivers.parameters import Parameters
from migrate.receivers.recorded import Recorded
from migrate.receivers.results import Results
from migrate.receivers.settling import Early, late_functions
from migrate.receivers.torch_use import has_torch
from migrate.receivers.world import Asked
from migrate.table import Table

MODULE_ROOT = "torch.nn.Module"
ROUNDS = 4  # functions that call each other may never settle


@dataclass(eq=False)
class Inference:
    """Answers questions about kinds across files; every function is walked when first asked for.

    ``kinds`` maps the id of an expression node to its kind.
    """

    program: Program
    table: Table
    recorded: Recorded = field(default_factory=Recorded)
    kinds: dict[int, Kind] = field(default_factory=dict)
    _facts: dict[str, Facts] = field(default_factory=dict)
    _flows: dict[int, Flow] = field(default_factory=dict)
    _given: dict[int, dict[str, Kind]] = field(default_factory=dict)
    _modules: dict[str, Flow] = field(default_factory=dict)
    _walking: list[Function] = field(default_factory=list)
    _names: dict[str, dict[str, Kind]] = field(default_factory=dict)
    _naming: bool = False
    _early: Early = field(default_factory=Early)
    _captured: dict[str, Captured] = field(default_factory=dict)
    _graphs: dict[int, Graph] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results = Results(self.table)
        self.roots = covered_roots(self.table)
        self.has_torch = has_torch(self.program, self.table, self.roots)
        self._elimination = Elimination(self.table, self.program, self.is_module, self.member)
        self._parameters = Parameters(self)
        self._classes = Classes(self)
        self._summaries = Summaries(self.program)

    def everything(self) -> None:
        """Walk the whole program, so that no answer depends on what is asked first."""
        self._naming = True
        for path in self.program.files:
            self._named(path)
        self._naming = False
        self._every_file()
        again = late_functions(self.program, self._parameters, self._given)
        for _ in range(ROUNDS):
            for function in again:
                self._flows.pop(id(function), None)
            self._early.forget(again)
            self._classes.forget()
            self._every_file()
            again = self._early.outdated(self)
            if not again:
                return

    def facts(self, path: str) -> Facts:
        """Return what is known of the flow of names in a file."""
        if path not in self._facts:
            file = self.program.files[path]
            self._facts[path] = Facts(file.source.tree, file.parents, self._graphs)
        return self._facts[path]

    # -- files ----------------------------------------------------------------------------------

    def _every_file(self) -> None:
        for path in self.program.files:
            self.file(path)

    def file(self, path: str) -> None:
        """Walk everything in a file."""
        self.module(path)
        for function in self.program.files[path].functions.values():
            self.flow(function)

    def module(self, path: str) -> Flow:
        """The walk of a file's top level."""
        if path not in self._modules:
            flow = self._modules[path] = Flow(self, path, None)
            importing.bind(self.program.files[path], flow)
            flow.solve(self.program.files[path].source.tree, dict(flow.variables))
        return self._modules[path]

    def captured(self, path: str) -> Captured:
        """What the functions of a file do to variables of the units around them."""
        if path not in self._captured:
            self._captured[path] = captured(self.program.files[path])
        return self._captured[path]

    def graph(self, unit: Unit) -> Graph:
        """The control flow graph of a unit."""
        if id(unit) not in self._graphs:
            self._graphs[id(unit)] = graph_of(unit)
        return self._graphs[id(unit)]

    def _named(self, path: str) -> dict[str, Kind]:
        """What definitions and imports of a file bind: known before anything is walked."""
        if path not in self._names:
            flow = Flow(self, path, None)
            self._names[path] = flow.variables
            importing.bind(self.program.files[path], flow)
        return self._names[path]

    def global_kind(self, path: str, name: str) -> Kind:
        if name == "__name__":
            return STR
        if self._naming:
            return self._named(path).get(name, NOTHING)
        flow = self.module(path)
        found = flow.variables.get(name, NOTHING)
        return found if found or flow.done else self._named(path).get(name, NOTHING)

    def imported(self, path: str, module: str, level: int, name: str | None) -> Kind:
        """The kind of an imported module, or of a name from it."""
        return importing.imported(self, path, module, level, name)

    def star(self, path: str, module: str, level: int) -> dict[str, Kind]:
        """What ``from module import *`` binds."""
        return importing.star(self, path, module, level)

    # -- functions ------------------------------------------------------------------------------

    def function_of(self, key: str) -> Function | None:
        return self.program.functions.get(key)

    def class_of(self, key: str) -> Class | None:
        return self.program.classes.get(key)

    def flow(self, function: Function) -> Flow:
        """The walk of a function; while it runs, what is known so far."""
        found = self._flows.get(id(function))
        if found is not None:
            return found
        self.module(function.path)
        if function.parent is not None:
            self.flow(function.parent)
            found = self._flows.get(id(function))
            if found is not None:
                return found
        self._flows[id(function)] = Flow(self, function.path, function)
        # first without its callers: they may ask for its result while they are walked
        alone = self._parameters.of(function, calls=False)
        flow = self._walk(function, alone)
        called = self._given[id(function)] = self._parameters.of(function)
        if called == alone:
            return flow
        return self._walk(function, called, flow.result, shown=flow.shown)

    def settled(self, function: Function) -> bool:
        """Whether the last walk of a function, the one that knows its callers, has ended."""
        found = self._flows.get(id(function))
        return found is not None and found.done and id(function) in self._given

    def too_early(self, asked: Asked, answer: Kind, by: Sequence[Function]) -> Kind:
        """The answer to a question whose answer may change; ``by``: the functions that give it."""
        if self._walking and self._walking[-1] not in by:
            self._early.note(asked, self._walking[-1], answer)
        return answer

    def _walk(
        self,
        function: Function,
        given: dict[str, Kind],
        before: Kind = NOTHING,
        shown: Mapping[str, Kind] | None = None,
    ) -> Flow:
        flow = Flow(self, function.path, function, before=before, shown=dict(shown or {}))
        self._flows[id(function)] = flow
        self._walking.append(function)
        flow.solve(function.node, given)
        self._walking.pop()
        return flow

    def returns(self, function: Function, call: ast.Call | None = None) -> Kind:
        """What calling a function of the project gives."""
        flow = self.flow(function)
        found = self._returned(function, flow)
        sure = self.settled(function) and UNKNOWN.isdisjoint(found)
        return found if sure else self.too_early(function, found, (function,))

    def _returned(self, function: Function, flow: Flow) -> Kind:
        node = function.node
        written = UNKNOWN
        if not isinstance(node, ast.Lambda) and node.returns is not None:
            written = values.resolved(annotated(node.returns, self.kinds), self)
        result = flow.result or flow.before
        if function.decorated("property", "contextmanager", "lru_cache"):
            return result or written
        if written != UNKNOWN and not any(a.kind == "Module" and not a.name for a in written):
            return written
        silent = flow.done and isinstance(node, ast.FunctionDef)
        return result or (NONE if silent else UNKNOWN)

    def shown(self, function: Function) -> Mapping[str, Kind]:
        """What the body of a function proves of its parameters."""
        flow = self._flows.get(id(function))
        return {**flow.shown, **flow.evidence} if flow is not None else {}

    def returns_with(self, function: Function, given: dict[str, Kind]) -> Kind:
        """Walk a lambda with known parameters."""
        self._parameters.give(function, given)
        self._flows.pop(id(function), None)
        return self.flow(function).result

    def outer_kind(self, function: Function, name: str) -> Kind:
        """A name that is not local: from the enclosing functions, then the module."""
        parent = function.parent
        while parent is not None:
            if name in parent.locals or name in parent.inner:
                flow = self._flows.get(id(parent)) or self.flow(parent)
                found = flow.variables.get(name, NOTHING)
                if name in parent.inner:
                    found = join(found, flow.inner.get(name, NOTHING))
                return found or UNKNOWN
            parent = parent.parent
        found = self.global_kind(function.path, name)
        if isinstance(function.node, ast.Lambda):
            found = join(found, self.module(function.path).inner.get(name, NOTHING))
        return found

    def note_call(self, key: str, call: ast.Call) -> None:
        """An instance of the class is called here: its forward gets these arguments."""
        self._parameters.note_call(key, call)

    # -- effects --------------------------------------------------------------------------------

    def effects(self, function: Function) -> Effects:
        """Return what calling a function of the project may write, mutate, rebind and keep."""
        return self._summaries.of(function)

    def changes(self, call: ast.Call) -> Changes:
        """Return what a call, whose parts were evaluated, may change where it stands."""
        return changes.of_call(call, self, self._summaries)

    # -- classes --------------------------------------------------------------------------------

    def class_body(self, key: str, variables: dict[str, Kind]) -> None:
        """The variables that a walk of the class's body has found."""
        self._classes.class_body(key, variables)

    def bases(self, key: str) -> list[Kind]:
        """The kinds of the base classes as written."""
        return self._classes.bases(key)

    def torch_bases(self, key: str) -> tuple[str, ...]:
        """The torch classes that a class of the project is derived from, nearest first."""
        return self._classes.torch_bases(key)

    def is_module(self, key: str) -> bool:
        """Whether a class of the project is a torch Module."""
        return self._classes.is_module(key)

    def is_function(self, key: str) -> bool:
        """Whether a class of the project is a torch.autograd.Function."""
        return self._classes.is_function(key)

    def member(self, key: str, name: str) -> Kind:
        """``instance.name`` for an instance of a class of the project."""
        return self._classes.member(key, name)

    def likely(self, atom: Atom, name: str) -> tuple[Kind, str]:
        """What a member must be of which nothing is known, and the assumption in it."""
        return self._classes.likely(atom, name)

    def inherited(self, key: str, name: str) -> Kind:
        """``super().name``: what the bases give."""
        return self._classes.inherited(key, name)

    def only_tensors_multiply(self) -> bool:
        """Whether ``a @ b`` can only be of Tensors in this program."""
        return self._elimination.multiplied

    def only_modules_have(self, attribute: str) -> bool:
        """Whether no class of the project that is not a Module has such a method or attribute."""
        return all(self.is_module(c.key) for c in self.program.holders.get(attribute, ()))

    def only_tensors_have(self, asked: Question) -> str:
        """Why nothing but a Tensor can be meant by the call of a method, or ""."""
        return self._elimination.why(asked)

    def assumptions(self, path: str) -> dict[int, str]:
        """For what was found by elimination in a file: why, by id of the node."""
        flows = map(self.flow, self.program.files[path].functions.values())
        return {k: why for flow in (self.module(path), *flows) for k, why in flow.assumed.items()}
