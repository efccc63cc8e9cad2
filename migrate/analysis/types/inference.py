"""Kinds of every expression of a program: the cells of the fixpoint, and how each is computed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from migrate.analysis import cfg
from migrate.analysis.callgraph import CONSTRUCTORS
from migrate.analysis.facts import Facts
from migrate.analysis.program import Class, File, Function, Program
from migrate.analysis.summaries import Effects, Summaries
from migrate.analysis.types import importing, kinds, values
from migrate.analysis.types.annotations import annotated
from migrate.analysis.types.captured import Captured, captured, is_wraps
from migrate.analysis.types.classes import Classes
from migrate.analysis.types.contents import is_plain, received, with_more
from migrate.analysis.types.elimination import Elimination, Question
from migrate.analysis.types.fixpoint import Cell, Fixpoint
from migrate.analysis.types.flow import Flow
from migrate.analysis.types.kinds import NONE, NOTHING, STR, UNKNOWN, Atom, Kind, alike, join
from migrate.analysis.types.memos import Memo
from migrate.analysis.types.outcome import NOT_WALKED, Outcome, combined, widened
from migrate.analysis.types.outside import has_torch
from migrate.analysis.types.parameters import Parameters
from migrate.analysis.types.parametric import results
from migrate.analysis.types.recorded import Recorded
from migrate.analysis.types.results import Results
from migrate.analysis.types.told import TOLD, Shared, Told
from migrate.analysis.types.units import Unit, UnitIndex
from migrate.analysis.types.world import Result
from migrate.mapping.names import covered_roots
from migrate.mapping.table import Table

Value = TypeVar("Value")


@dataclass(eq=False)
class Inference(Told):
    """The kinds of a whole program; a function is analysed when its kinds are first needed.

    ``kinds`` maps the id of an expression node to its kind.
    """

    program: Program
    table: Table
    recorded: Recorded = field(default_factory=Recorded)
    kinds: dict[int, Kind] = field(default_factory=dict)
    _flows: dict[Unit, Flow] = field(default_factory=dict)
    _proofs: dict[Unit, dict[str, Kind]] = field(default_factory=dict)
    _names: dict[str, dict[str, Kind]] = field(default_factory=dict)
    _bodies: dict[str, Mapping[str, Kind]] = field(default_factory=dict)
    _open: set[Function] = field(default_factory=set)
    _never: set[Function] = field(default_factory=set)
    _before: list[dict[str, File]] = field(default_factory=list)
    _ranks: dict[Function, int] = field(default_factory=dict)
    _naming: bool = False
    _facts: dict[str, Facts] = field(default_factory=dict)
    _captured: dict[str, Captured] = field(default_factory=dict)
    _graphs: dict[int, cfg.Graph] = field(default_factory=dict)
    _memos: dict[Unit, dict[int, Memo]] = field(default_factory=dict)
    _shared: Shared = field(default_factory=Shared)

    def __post_init__(self) -> None:
        self.results = Results(self.table)
        self.roots = covered_roots(self.table)
        self._parameters = Parameters(self)
        self._classes = Classes(self)
        self._cells = Fixpoint(self._compute, combined, widened, self._rank, self._start)
        self._read_program()

    def _read_program(self, before: Summaries | None = None) -> None:
        self.has_torch = has_torch(self.program, self.table, self.roots)
        self.summaries = Summaries(self.program, before)
        self.index = UnitIndex(self.program)
        self.is_field = self.index.is_field
        self._elimination = Elimination(self)

    def renew(self, program: Program) -> None:
        """Solve the program anew after some of its files became others that do the same.

        What was found stays, but for the files that are gone and all that has read of them: what
        flowed round a cycle flows still. What a walk reads of the text of other files is a cell as
        well, so that a change is seen.
        """
        files = self.program.files
        gone = {path: file for path, file in files.items() if program.files.get(path) is not file}
        self._before.append(gone)  # no other node gets the id of one that was seen
        functions = {f for file in gone.values() for f in file.functions.values()}
        keys = {c.key for file in gone.values() for c in file.classes.values()}
        units: set[Unit] = {*gone, *functions}
        self.program = program
        for path in gone:
            for known in (self._facts, self._captured, self._names):
                known.pop(path, None)
        for key in keys:
            self._bodies.pop(key, None)
        for unit in units:
            self._flows.pop(unit, None)
            self._memos.pop(unit, None)
            self._proofs.pop(unit, None)
        self._read_program(self.summaries)
        self._untold(units)
        self._parameters = self._parameters.renewed(units)
        self._classes = self._classes.renewed(units)
        lost = {*functions, *(keys - program.classes.keys())}
        self._cells.renew(lambda c: c[-1] in units if c[0] == "walk" else not lost.isdisjoint(c))
        self.everything()

    def everything(self) -> None:
        """Solve the whole program: no answer depends on what is read first."""
        self._naming = True
        for path in self.program.files:
            self._named(path)
        self._naming = False
        parts = self.summaries.components()
        order = [function for part in parts for function in sorted(part, key=lambda f: f.key)]
        self._ranks = {f: i + 2 for i, part in enumerate(parts) for f in part}
        before, never = self._open, self._never
        self._never = {f for f in order if not self._parameters.may_be_called(f)}
        self._open = self._never | ((before - never) & self._ranks.keys())
        for function in before ^ self._open:
            self.invalidate("walk", function)
        for path in sorted(self.program.files):
            self._cells.ensure(("walk", path))
        # what makes objects comes first, callers before callees, then what uses them
        makers = [f for f in order if f.owner is None or f.name in CONSTRUCTORS]
        for function in (*reversed(makers), *reversed(order)):
            self._cells.ensure(("walk", function))
        self._cells.settle()
        while roots := self._uncalled():
            self._open.update(roots)
            for function in roots:
                self._cells.invalidate(("parameters", function))
            self._cells.settle()
        self._finish()

    def _finish(self) -> None:
        """Make unknown what no analysed unit has reached."""
        self._memos.clear()  # they rest on kinds that change here
        for node, value in self.kinds.items():
            if not value:
                self.kinds[node] = UNKNOWN

    def _uncalled(self) -> list[Function]:
        """Return the functions that no call has reached and none of the others calls."""
        closed = [f for f in self._ranks if f not in self._open and self._is_closed(f)]
        called = {
            callee
            for function in closed
            for callee in self.summaries.callees(function)
            if self._ranks[callee] != self._ranks[function]
        }
        return [f for f in closed if f not in called] or closed

    def _is_closed(self, function: Function) -> bool:
        parameters = self._ask(("parameters", function), dict[str, Kind])
        return any(not value for value in parameters.values())

    def stale(self) -> list[tuple[Cell, object, object]]:
        """Return the cells that would have another value now; for tests."""
        found = list(self._cells.disagreeing())
        self._finish()
        return found

    # -- cells ----------------------------------------------------------------------------------

    def _ask(self, cell: Cell, _: type[Value]) -> Value:
        return self._cells.read(cell)  # type: ignore[no-any-return]

    def kind(self, node: ast.AST) -> Kind:
        """Return the kind of an expression; nothing where none was evaluated."""
        return self.kinds.get(id(node), NOTHING)

    def kind_of(self, *cell: Hashable) -> Kind:
        """Return the value of a cell that is a kind."""
        return self._cells.read(cell)  # type: ignore[no-any-return]

    def invalidate(self, *cell: Hashable) -> None:
        """Have a cell computed again."""
        self._cells.invalidate(cell)

    @property
    def unit(self) -> Unit | None:
        """The unit that is walked now."""
        reader = self._cells.reader()
        return cast(Unit, reader[1]) if reader is not None and reader[0] == "walk" else None

    def _rank(self, cell: Cell) -> int:
        if cell[0] != "walk":
            return 0
        unit = cell[1]
        return 1 if isinstance(unit, str) else self._ranks.get(unit, 2)  # type: ignore[call-overload]

    def _start(self, cell: Cell) -> object:
        start = _STARTS.get(cast(str, cell[0]))
        return start() if start is not None else NOTHING

    def _compute(self, cell: Cell) -> object:
        return _COMPUTE[cast(str, cell[0])](self, *cell[1:])

    def found(self, unit: Unit) -> Outcome | Flow:
        """What a unit's walk has found; while it runs for the first time, what it has so far."""
        outcome = self._ask(("walk", unit), Outcome)
        return self._flows.get(unit, outcome) if outcome is NOT_WALKED else outcome

    # -- units ----------------------------------------------------------------------------------

    def _walk(self, unit: Unit) -> Outcome:
        if isinstance(unit, str):
            flow = self._top_level(unit)
        else:
            self._cells.ensure(("walk", self.index.around(unit)))
            given = self._ask(("parameters", unit), dict[str, Kind])
            if any(not value for value in given.values()):
                return Outcome()  # no call has reached it so far
            flow = self._function(unit, given)
        self._parameters.finish(unit)
        self._classes.finish(unit)
        self._tell(unit, flow)
        given_back: tuple[Result, ...] = ()
        if not isinstance(unit, str):
            given_back = results(unit, self.facts(unit.path), self.kinds, self.index)
        bodies = {c.key: dict(self._bodies.get(c.key, {})) for c in self.index.classes(unit)}
        shown = self._still_shown(unit, flow, {} if isinstance(unit, str) else given)
        return Outcome(
            dict(flow.variables), dict(flow.stores), flow.result, shown, bodies,
            self._exposed(unit), given_back, dict(flow.inner), dict(flow.grown),
            frozenset(flow.kept), flow.put_into_given,
        )  # fmt: skip

    def _still_shown(self, unit: Unit, flow: Flow, given: Mapping[str, Kind]) -> dict[str, Kind]:
        """Return what the body of a unit proves of its parameters.

        What is surely of a kind needs no proof, so a walk finds none where callers pass it. What an
        earlier walk proved holds then as well: callers that rely on it would lose it otherwise, and
        pass something unknown again, without end.
        """
        shown = {**flow.shown, **flow.evidence}
        for name, proved in self._proofs.get(unit, {}).items():
            rest = kinds.without_none(given.get(name, NOTHING))
            if name not in shown and rest and rest == alike(proved, rest):
                shown[name] = proved
        self._proofs[unit] = shown
        return shown

    def _exposed(self, unit: Unit) -> dict[int, Kind]:
        """The kinds of nodes that the rest of the program reads."""
        kinds = self.kinds
        found = {id(n): kinds.get(id(n), UNKNOWN) for n in self.index.read_by_node(unit)}
        for node in self.index.annotations(unit):
            found[id(node)] = annotated(node, kinds)
        return found

    def node_kind(self, unit: Unit, node: ast.expr) -> Kind | None:
        """Return the kind of a default, decorator or base class, or what an annotation says."""
        found = self.found(unit)
        if isinstance(found, Outcome):
            return found.nodes.get(id(node))
        if id(node) in self.index.annotation_ids:
            return annotated(node, self.kinds)
        return self.kinds.get(id(node))

    def _top_level(self, path: str) -> Flow:
        flow = self._flows[path] = Flow(self, path, None, memos=self._memos.setdefault(path, {}))
        importing.bind(self.program.files[path], flow)
        flow.solve(self.program.files[path].source.tree, dict(flow.variables))
        return flow

    def _function(self, function: Function, given: dict[str, Kind]) -> Flow:
        memos = self._memos.setdefault(function, {})
        flow = self._flows[function] = Flow(self, function.path, function, memos=memos)
        flow.solve(function.node, given)
        return flow

    def facts(self, path: str) -> Facts:
        """Return what is known of the flow of names in a file."""
        if path not in self._facts:
            file = self.program.files[path]
            self._facts[path] = Facts(file.source.tree, file.parents, self._graphs)
        return self._facts[path]

    def captured(self, path: str) -> Captured:
        """What the functions of a file do to variables of the units around them."""
        if path not in self._captured:
            self._captured[path] = captured(self.program.files[path])
        return self._captured[path]

    def graph(self, unit: cfg.Unit) -> cfg.Graph:
        """The control flow graph of a unit."""
        if id(unit) not in self._graphs:
            self._graphs[id(unit)] = cfg.graph_of(unit)
        return self._graphs[id(unit)]

    # -- files ----------------------------------------------------------------------------------

    def file(self, path: str) -> None:
        """Walk everything in a file."""
        self.module(path)
        for function in self.program.files[path].functions.values():
            self.flow(function)

    def module(self, path: str) -> Flow:
        """The walk of a file's top level."""
        self._cells.read(("walk", path))
        return self._flows[path]

    def flow(self, function: Function) -> Flow | None:
        """The walk of a function; None while no call has reached it."""
        self._cells.read(("walk", function))
        return self._flows.get(function)

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
        return self.kind_of("global", path, name)

    def _global(self, path: str, name: str) -> Kind:
        found = self.found(path)
        value = found.variables.get(name, NOTHING)
        if not value and not isinstance(found, Outcome):
            value = self._named(path).get(name, NOTHING)
        writers = self.index.writers(path, name)
        value = join(value, *(self.found(w).variables.get(name, NOTHING) for w in writers))
        if name in self.index.stored_attributes:
            value = join(value, self._classes.put_into_module(path, name))
        if is_plain(value):
            return value
        site = f"={path}:{name}"
        return received(with_more(value, self.put(site)), site)

    def imported(self, path: str, module: str, level: int, name: str | None) -> Kind:
        """The kind of an imported module, or of a name from it."""
        return importing.imported(self, path, module, level, name)

    def star(self, path: str, module: str, level: int) -> Mapping[str, Kind]:
        """What ``from module import *`` binds."""
        target = self.program.linked(path, module, level)
        if target is None or target == path:
            return {}
        return self._ask(("star", target), dict[str, Kind])

    def _star(self, path: str) -> dict[str, Kind]:
        found = self.found(path).variables
        return {n: v for n, v in found.items() if not n.startswith("_")}

    # -- functions ------------------------------------------------------------------------------

    def returns(self, function: Function) -> Kind:
        """Return the result of calling a function of the project."""
        return self.kind_of("result", function)

    def returns_any(self, function: Function) -> Kind:
        """Return the result of a method, by its own definition and those that override it."""
        return self.kind_of("any result", function)

    def _any_result(self, function: Function) -> Kind:
        return join(*map(self.returns, self.overriding(function)))

    def _result(self, function: Function) -> Kind:
        node = function.node
        found = self.found(function)
        written = UNKNOWN
        if not isinstance(node, ast.Lambda) and node.returns is not None:
            told = self.node_kind(self.index.around(function), node.returns)
            written = values.resolved(told or UNKNOWN, self)
        result = found.result
        if function.decorated("contextmanager"):
            return result or written
        if function.decorated("property", "cached_property", "lru_cache"):
            return _settled_by(written, result) if result else written
        if written != UNKNOWN and not any(a.kind == "Module" and not a.name for a in written):
            return written
        if self._parameters.is_replaced(function):
            result = self._parameters.decorated_result(function, result)
        if written != UNKNOWN:
            result = _settled_by(written, result)
        if result or isinstance(node, ast.Lambda):
            return result
        if not isinstance(found, Outcome) or self._is_closed(function):
            return NOTHING
        if isinstance(node.body[-1], ast.Raise):
            alone = len(self.overriding(function)) == 1
            return UNKNOWN if alone else NOTHING
        return NONE if self.index.gives_nothing(function) else NOTHING

    def shown(self, function: Function) -> Mapping[str, Kind]:
        """What the body of a function proves of its parameters."""
        return self._ask(("shown", function), dict[str, Kind])

    def _shown(self, function: Function) -> dict[str, Kind]:
        found = self.found(function)
        return dict(found.shown) if isinstance(found, Outcome) else {}

    def results_of(self, function: Function) -> tuple[Result, ...]:
        """Return the result of a function whose result depends on the arguments of the call."""
        return self._ask(("results", function), tuple)

    def _results_of(self, function: Function) -> tuple[Result, ...]:
        node = function.node
        if isinstance(node, ast.Lambda) or not (
            node.returns or any(not is_wraps(d) for d in node.decorator_list)
        ):
            found = self.found(function)
            return found.results if isinstance(found, Outcome) else ()
        return ()  # a decorator or an annotation says what it is

    def argument(self, function: Function, name: str) -> Kind:
        """Return what a parameter is that a call does not pass: its default."""
        default = self._parameters.default(function, name)
        if default is None:
            return NOTHING
        return self.node_kind(self.index.around(function), default) or NOTHING

    def parameter(self, function: Function, name: str) -> Kind:
        """Return what a function may get for a parameter, by its annotation and all its calls."""
        known: dict[str, Kind] = self._ask(("parameters", function), dict)
        return known.get(name, UNKNOWN)

    def returns_with(self, function: Function, given: dict[str, Kind]) -> Kind:
        """Return the result of a function that is called by unseen code with these arguments."""
        self._parameters.give(function, given)
        return self.returns(function)

    def outer_kind(self, function: Function, name: str) -> Kind:
        """A name that is not local: from the enclosing functions, then the module."""
        parent = function.parent
        while parent is not None:
            if name in parent.locals or name in parent.inner:
                return self.kind_of("outer", parent, name)
            parent = parent.parent
        found = self.global_kind(function.path, name)
        if isinstance(function.node, ast.Lambda):
            found = join(found, self.kind_of("inner", function.path, name))
        return found

    def binds(self, function: Function, name: str) -> Kind:
        """What a function binds a variable of a unit around it to."""
        return self.kind_of("binds", function, name)

    def _outer(self, function: Function, name: str) -> Kind:
        found = self.found(function)
        value = join(found.variables.get(name, NOTHING), found.inner.get(name, NOTHING))
        writers = self.index.writers(function, name)
        value = join(value, *(self.found(w).variables.get(name, NOTHING) for w in writers))
        unbound = isinstance(found, Outcome) and not self._is_closed(function)
        return value or (UNKNOWN if unbound else NOTHING)

    def declared(self, unit: Unit, name: str) -> ast.expr | None:
        """Return the annotation of a variable of a unit, wherever in the unit it is."""
        return self.index.declared(unit, name)

    def note_call(self, call: ast.Call) -> None:
        """Pass the arguments of a call, whose parts were evaluated, to what it may run."""
        self._parameters.note(call)

    # -- classes --------------------------------------------------------------------------------

    def class_body(self, key: str, variables: dict[str, Kind]) -> None:
        """The variables that a walk of the class's body has found."""
        self._bodies[key] = variables

    def body(self, owner: Class) -> Mapping[str, Kind]:
        """What the body of a class binds."""
        found = self.found(self.index.around(owner))
        if isinstance(found, Outcome):
            return found.bodies.get(owner.key, {})
        return self._bodies.get(owner.key, {})

    def bases(self, key: str) -> tuple[Kind, ...]:
        """The kinds of the base classes as written."""
        return self._ask(("bases", key), tuple)

    def torch_bases(self, key: str) -> tuple[str, ...]:
        """The torch classes that a class of the project is derived from, nearest first."""
        return self._ask(("torch bases", key), tuple)

    def is_module(self, key: str) -> bool:
        """Whether a class of the project is a torch Module."""
        return self._ask(("is module", key), bool)

    def is_function(self, key: str) -> bool:
        """Whether a class of the project is a torch.autograd.Function."""
        return self._classes.is_function(key)

    def member(self, key: str, name: str) -> Kind:
        """``instance.name`` for an instance of a class of the project."""
        return self.kind_of("member", key, name)

    def named_by(self, key: str, pattern: str) -> tuple[tuple[str, ...], Kind]:
        """Return the members of an instance that fit a pattern, and what else may be meant."""
        return self._classes.named_by(key, pattern)

    def likely(self, atom: Atom, name: str) -> tuple[Kind, str]:
        """What a member must be of which nothing is known, and the assumption in it."""
        return self._classes.likely(atom, name)

    def inherited(self, key: str, name: str) -> Kind:
        """``super().name``: what the bases give."""
        return self.kind_of("inherited", key, name)

    def only_tensors_multiply(self) -> bool:
        """Whether ``a @ b`` can only be of Tensors in this program."""
        self._ask(("rivals",), tuple)
        return self._elimination.multiplied

    def only_modules_have(self, attribute: str) -> bool:
        """Whether no class of the project that is not a Module has such a method or attribute."""
        return self._ask(("only modules", attribute), bool)

    def _only_modules(self, attribute: str) -> bool:
        return all(self.is_module(c.key) for c in self.program.holders.get(attribute, ()))

    def holds_callable(self, name: str) -> bool:
        """Whether instances of the project's classes hold something to call under a name."""
        return self._ask(("held", name), bool)

    def has_modules(self) -> bool:
        """Whether Modules are around: classes of the project, torch.nn, a library of models."""
        return self._ask(("modules",), bool)

    def only_tensors_have(self, asked: Question) -> str:
        """Why nothing but a Tensor can be meant by the call of a method, or ""."""
        self._ask(("rivals",), tuple)
        self.holders(asked.name)
        return self._elimination.why(asked)

    def put_on_classes(self, name: str) -> Kind:
        """Return what the program binds an attribute to on classes, or objects, that are known."""
        return self._classes.put_on_classes(name)

    def assumptions(self, path: str) -> dict[int, str]:
        """For what was found by elimination in a file: why, by id of the node."""
        flows = [self.module(path), *map(self.flow, self.program.files[path].functions.values())]
        found = {k: why for flow in flows if flow for k, why in flow.assumed.items()}
        if not self.program.root:
            return found
        passed: dict[int, str] = {}  # a library has other callers than those in the project
        for function in self.program.files[path].functions.values():
            passed |= self._parameters.assumed(function, self.shown(function))
        return passed | found


_STARTS: Mapping[str, Callable[[], object]] = {
    "walk": lambda: NOT_WALKED,
    **dict.fromkeys(
        ("parameters", "passed", "shown", "star", "grown", "put", "put into given"), dict
    ),
    **dict.fromkeys(("bases", "torch bases", "above", "outside", "set by any name"), tuple),
    **dict.fromkeys(("overriding", "classes", "holders", "rivals", "results"), tuple),
    **dict.fromkeys(("effects", "unseen"), Effects),
    **dict.fromkeys(("joined", "joined by units"), frozenset),
    **dict.fromkeys(("is module", "only modules", "held", "modules"), bool),
}
_COMPUTE: Mapping[str, Callable[..., object]] = {
    "walk": Inference._walk,
    "parameters": lambda self, function: self._parameters.of(function),
    "passed": lambda self, function: self._parameters.passed(function),
    "result": Inference._result,
    "any result": Inference._any_result,
    "shown": Inference._shown,
    "results": Inference._results_of,
    "global": Inference._global,
    "star": Inference._star,
    "outer": Inference._outer,
    "inner": lambda self, path, name: self.found(path).inner.get(name, NOTHING),
    "binds": lambda self, function, name: self.found(function).variables.get(name, NOTHING),
    **TOLD,
    "above": lambda self, key: self._classes.above(key),
    "stored": lambda self, key, name: self._classes.stored(key, name),
    "set by any name": lambda self, key: self._classes.set_by_any_name(key),
    "member": lambda self, key, name: self._classes.member(key, name),
    "inherited": lambda self, key, name: self._classes.inherited(key, name),
    "bases": lambda self, key: self._classes.bases(key),
    "torch bases": lambda self, key: self._classes.torch_bases(key),
    "is module": lambda self, key: self._classes.is_module(key),
    "outside": lambda self, name: self._classes.outside(name),
    "only modules": Inference._only_modules,
    "held": lambda self, name: self._elimination.holds_callable(name),
    "modules": lambda self: self._elimination.has_modules(),
}


def _settled_by(written: Kind, found: Kind) -> Kind:
    """What was found, with what an annotation says in the place of what is unknown."""
    return join(found - UNKNOWN, written) if written != UNKNOWN and found >= UNKNOWN else found
