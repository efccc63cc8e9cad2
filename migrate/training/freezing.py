"""Find the training steps whose weights may be frozen or freed after their optimizer was made.

torch reads ``requires_grad`` whenever it runs backward, and updates what has a gradient; a train
step is built for the weights that can be trained then. A change that may run after an optimizer
was built or used is *late*. A step is not affected by late changes if all weights that it updates
are free again whenever it runs, as those of a discriminator that is frozen for the other step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from migrate.analysis.callgraph import CallGraph
from migrate.analysis.cfg import Graph, Node, Unit, evaluated, graph_of
from migrate.analysis.dataflow import Forward, solve
from migrate.analysis.program import File, Function, Program
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import without_none
from migrate.syntax.trees import children, dotted, last_name
from migrate.training.computed import is_computed
from migrate.training.groups import Group, models_of
from migrate.training.marks import View, has_marks, marks, may_mark
from migrate.training.switches import (
    EVERY,
    Switch,
    arguments_of,
    only_switches,
    switches_at,
    truth,
)

# by which a function gets at weights or their gradients
_HANDLES = frozenset(
    "grad data parameters named_parameters state_dict load_state_dict param_groups".split()
)
_RESOLVED = ("ref", "foreign", "function", "method", "class", "Module")
_RUNNING_NOTHING = frozenset(("parameters", "requires_grad_", "isinstance", "modules", "children"))
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(eq=False)
class Body:
    """A module or function: its graph, and what each node runs."""

    file: File
    function: Function | None
    graph: Graph
    switches: dict[int, list[Switch]] = field(default_factory=dict)  # by index of the node
    events: set[int] = field(default_factory=set)
    handles: bool = False
    any_of: Sequence[Body] = ()  # what a call out of sight may run: no body of its own
    calls: dict[int, list[tuple[ast.Call | None, Body]]] = field(default_factory=dict)

    @cached_property
    def called(self) -> list[tuple[Node, list[ast.Call]]]:
        """The calls of each node, those of comprehensions included."""
        return [(node, list(_calls(node))) for node in self.graph.nodes]


class Freezing:
    """The late changes of files that run in one process, and the steps that they affect."""

    def __init__(self, inference: Inference, files: Sequence[File]) -> None:
        self.inference = inference
        self.files = files
        self.program: Program = inference.program
        self.bodies: dict[int, Body] = {}
        self.late: frozenset[Switch] = frozenset()
        self.early: frozenset[Switch] = frozenset()
        self._collect()
        self._settle()

    # -- what runs where ------------------------------------------------------------------------

    def _collect(self) -> None:
        for file in self.files:
            self._add(file, None, file.source.tree)
            for function in file.functions.values():
                self._add(file, function, function.node)
        graph = self.inference.summaries.graph
        for body in self.bodies.values():
            view = View(body.file, self.inference)
            for node in body.graph.nodes if b"requires_grad" in body.file.source.data else ():
                found = list(switches_at(view, body.function, body.graph.unit, node))
                if found:
                    body.switches[node.index] = found
            nodes = body.function.nodes if body.function is not None else ()
            at = (n for n in nodes if isinstance(n, ast.Attribute) and n.attr in _HANDLES
                  and not only_switches(body.file, n))  # fmt: skip
            body.handles = any(n.attr != "data" or not is_computed(view, n.value) for n in at)
        self._switching: dict[str, list[Function]] = {}
        for body in self._all():
            if body.function is not None and body.switches:
                self._switching.setdefault(body.function.name, []).append(body.function)
        unseen = [f for f in graph.indirect if f.name in self._switching]
        any_of = [self.bodies[id(f)] for f in unseen if id(f) in self.bodies]
        nowhere = graph_of(ast.Module([], []))
        self._unseen = Body(self.files[0], None, nowhere, any_of=any_of)
        self._unseen.calls[nowhere.entry.index] = [(None, body) for body in any_of]
        for file in self.files:
            view = View(file, self.inference)
            for part in (file, *file.functions.values()):
                body = self.bodies[id(part)]
                self._mark_events(view, body)
                for node, calls in body.called:
                    ran = list(self._ran(graph, view, body, node, calls))
                    if ran:
                        body.calls[node.index] = ran

    def _add(self, file: File, function: Function | None, unit: Unit) -> None:
        graph = self.inference.graph(unit)
        self.bodies[id(function or file)] = Body(file, function, graph)

    def _mark_events(self, view: View, body: Body) -> None:
        if not has_marks(view):
            return
        if not any(may_mark(view, call) for _, calls in body.called for call in calls):
            return
        block = (body.function.node if body.function is not None else view.file.source.tree).body
        for mark in marks(view, block) if isinstance(block, list) else ():
            point = body.graph.at(mark.call, body.file.parents)
            if point is not None:
                body.events.add(point.index)
        for node, calls in body.called:
            if any(is_built(view, call) for call in calls):
                body.events.add(node.index)

    def _ran(
        self, graph: CallGraph, view: View, body: Body, node: Node, calls: list[ast.Call]
    ) -> Iterator[tuple[ast.Call | None, Body]]:
        """Yield the bodies that a node may run."""
        part = node.part
        if isinstance(part, ast.Import | ast.ImportFrom):
            yield from ((None, b) for b in self._imported(body.file, part))
        for call in calls:
            functions, unseen = self._targets(graph, view, body, call)
            for function in functions:
                if id(function) in self.bodies:
                    yield call, self.bodies[id(function)]
            if unseen and self._unseen.any_of:
                self.bodies[id(self._unseen)] = self._unseen
                yield call, self._unseen

    def _targets(
        self, graph: CallGraph, view: View, body: Body, call: ast.Call
    ) -> tuple[Iterable[Function], bool]:
        """Return the functions that a call may run, and whether it runs more, out of sight."""
        atoms = list(without_none(view.kind(call.func)))
        handed = self._handed(body, call)
        if atoms and all(a.kind in _RESOLVED for a in atoms):
            keys = [a.name if a.kind != "class" else f"{a.name}.__init__" for a in atoms]
            keys += [f"{a.name}.forward" for a in atoms if a.kind == "Module"]
            functions = (self.inference.function_of(key) for key in keys if "::" in key)
            return [*(f for f in functions if f is not None), *handed], False
        if isinstance(call.func, ast.Attribute) and _is_library(view, call.func.value):
            return handed, False
        found = graph.targets(body.file, call, body.function)
        return [*found.functions, *handed], found.unseen

    def _handed(self, body: Body, call: ast.Call) -> list[Function]:
        """Return the functions that a call is given by name: ``net.apply(freeze)``."""
        names = {last_name(a) for a in call.args}
        names |= {last_name(k.value) for k in call.keywords}
        return [f for name in sorted(names & self._switching.keys()) for f in self._switching[name]]

    def _imported(self, file: File, node: ast.Import | ast.ImportFrom) -> Iterator[Body]:
        found: set[str | None] = set()
        if isinstance(node, ast.Import):
            found |= {self.program.linked(file.path, a.name) for a in node.names}
        else:
            module = node.module or ""
            names = [module, *(f"{module}.{a.name}".strip(".") for a in node.names)]
            found |= {self.program.linked(file.path, name, node.level) for name in names}
        for path in sorted(p for p in found if p and p in self.program.files):
            if id(self.program.files[path]) in self.bodies:
                yield self.bodies[id(self.program.files[path])]

    # -- order ----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Find the late switches: those on a way behind an event."""
        events = {id(b) for b in self.bodies.values() if b.events}
        handling = {id(b) for b in self.bodies.values() if b.handles}
        switches = {id(b): {s for some in b.switches.values() for s in some} for b in self._all()}
        callers: dict[int, dict[int, Body]] = {}
        for body in self._all():
            for _, inner in (c for some in body.calls.values() for c in some):
                callers.setdefault(id(inner), {})[id(body)] = body
        known = (events, handling)
        waiting = [b for b in self._all() if switches[id(b)] or any(id(b) in k for k in known)]
        while waiting:  # calls may be recursive
            inner = waiting.pop()
            for body in callers.get(id(inner), {}).values():
                changed = not switches[id(inner)] <= switches[id(body)]
                switches[id(body)] |= switches[id(inner)]
                for some_known in known:
                    if id(inner) in some_known and id(body) not in some_known:
                        some_known.add(id(body))
                        changed = True
                if changed:
                    waiting.append(body)
        self._below, self._having_events, self._handling = switches, events, handling
        late: set[Switch] = set()
        for body in self._all():
            for index in self._behind_events(body):
                late.update(self._at(body, index))
        late |= self._from_outside()
        quiet = (b for b in self._all() if id(b) not in events)
        late -= {s for b in quiet for some in b.switches.values() for s in some if s.fresh}
        every = {s for some in switches.values() for s in some}
        self.late, self.early = frozenset(late), frozenset(every - late)

    def _all(self) -> Iterable[Body]:
        return self.bodies.values()

    def _at(self, body: Body, index: int) -> set[Switch]:
        found = set(body.switches.get(index, ()))
        for _, inner in body.calls.get(index, ()):
            found |= self._below[id(inner)]
        return found

    def _behind_events(self, body: Body) -> set[int]:
        """Return the nodes on a way behind a node that builds or uses an optimizer."""
        nodes = body.graph.nodes
        starts = set(body.events)
        starts |= {
            i
            for i, some in body.calls.items()
            if any(id(b) in self._having_events for _, b in some)
        }
        waiting, seen = [e.target.index for i in starts for e in nodes[i].successors], set()
        while waiting:
            index = waiting.pop()
            if index not in seen:
                seen.add(index)
                waiting += [e.target.index for e in nodes[index].successors]
        return seen

    def _from_outside(self) -> set[Switch]:
        """Return the switches of methods that nothing calls, in classes that train: whoever has an
        object of the class may call them in any order."""
        called = {id(b) for body in self._all() for some in body.calls.values() for _, b in some}
        found: set[Switch] = set()
        for owner in self.program.classes.values():
            methods = [b for f in owner.methods.values() if (b := self.bodies.get(id(f)))]
            if any(id(m) in self._having_events for m in methods):
                for method in methods:
                    starts = getattr(method.function, "name", "") == "__init__"
                    if id(method) not in called and not starts:
                        found |= self._below[id(method)]
        return found

    def handles_weights(self, view: View, item: ast.stmt) -> bool:
        """Return whether a statement calls a function that may get at weights or gradients."""
        body = self.body_of(view, item)
        nodes = body.graph.inside(item) if id(item) in body.graph.spans else ()
        called = (b for n in nodes for _, b in body.calls.get(n.index, ()))
        return any(id(b) in self._handling for b in called)

    def switches_below(self, view: View, item: ast.stmt) -> bool:
        """Return whether a statement may freeze or free weights."""
        body = self.body_of(view, item)
        nodes = body.graph.inside(item) if id(item) in body.graph.spans else ()
        return any(self._at(body, n.index) for n in nodes)

    def body_of(self, view: View, item: ast.AST) -> Body:
        function = view.file.function_at(view.file.parents[id(item)])
        return self.bodies[id(view.file) if function is None else id(function)]

    # -- which steps ----------------------------------------------------------------------------

    def line(self, view: View, group: Group, function: Function | None) -> int:
        """Return the line of a change that the step of a group may meet; 0 for none."""
        if not self.late:
            return 0
        body = self.bodies[id(function) if function is not None else id(view.file)]
        updated = {m for o in group.optimizers for m in models_of(view, o)}
        first = min(self.late, key=lambda s: (s.path != view.file.path, s.line))
        if self._stays_free(body, group, updated):
            return 0
        return first.line

    def _stays_free(self, body: Body, group: Group, updated: set[str]) -> bool:
        frees = any(s.value is not False for s in self.late)
        if not updated or (frees and any(s.value is not True for s in self.early)):
            return False
        here = {s for i in range(len(body.graph.nodes)) for s in self._at(body, i)}
        closing = {s for s in self.late if s.value is not True}
        if closing - here or self._elsewhere(body, closing):
            return False
        state: frozenset[str] = frozenset()
        while True:
            solution = solve(_Frozen(self, body, state), body.graph)
            after = solution.before(body.graph.exit) or frozenset()
            if after <= state:
                break
            state |= after
        points = [body.graph.at(m.call, body.file.parents) for m in group.backwards]
        for point in points:
            frozen = solution.before(point) if point is not None else frozenset({EVERY})
            if any(_overlap(f, m) for f in frozen or () for m in updated):
                return False
        return True

    def _elsewhere(self, body: Body, closing: set[Switch]) -> bool:
        """Whether another body runs one of the switches by itself or by a call, but that it is
        called from this one."""
        inner: set[int] = set()
        waiting = [b for some in body.calls.values() for _, b in some]
        while waiting:
            one = waiting.pop()
            if id(one) not in inner:
                inner.add(id(one))
                waiting += [b for some in one.calls.values() for _, b in some]
        for other in self._all():
            if other is body or id(other) in inner:
                continue
            for index in range(len(other.graph.nodes)):
                if closing & set(other.switches.get(index, ())):
                    return True
                for _, one in other.calls.get(index, ()):
                    if id(one) in inner and closing & self._below[id(one)]:
                        return True
        return False

    def effects(self, body: Body, node: Node) -> Iterator[tuple[str, bool]]:
        """Yield the Modules that a node may freeze (False) or does free as a whole (True)."""
        for switch in body.switches.get(node.index, ()):
            if switch.value is not True or switch.whole:
                yield switch.subject, switch.value is True
        for call, inner in body.calls.get(node.index, ()):
            for one in inner.any_of or (inner,):
                if self._below[id(one)]:
                    yield from self._by_call(call, one)

    def _by_call(self, call: ast.Call | None, inner: Body) -> Iterator[tuple[str, bool]]:
        """Yield the Modules that a call may freeze or does free as a whole."""
        for module, value, whole in self._given(call, inner):
            if value is not True or (whole and module != EVERY):
                yield module, value is True

    def _given(self, call: ast.Call | None, inner: Body) -> Iterator[tuple[str, bool | None, bool]]:
        """``set_requires_grad([netD_A, netD_B], False)``: what it is given, the value, and whether
        all weights of it are meant."""
        own = {s for some in inner.switches.values() for s in some}
        if call is None or inner.function is None or self._below[id(inner)] - own:
            yield EVERY, False, False
            return
        given = {**inner.function.defaults, **dict(arguments_of(call, inner.function))}
        for switch in own:
            value = switch.value
            if value is None and switch.variable in given:
                value = truth(given[switch.variable])
            root = switch.subject.partition(".")[0]
            modules = list(_names(given[root])) if root in given else [EVERY]
            for module in modules or [EVERY]:
                yield module or EVERY, value, switch.whole and root == switch.subject

    def only_switches(self, view: View, item: ast.stmt) -> bool:
        """Return whether a statement calls a function that freezes or frees weights, no more."""
        if not isinstance(item, ast.Expr) or not self.switches_below(view, item):
            return False
        body = self.body_of(view, item)
        ran = [b for n in body.graph.inside(item) for _, b in body.calls.get(n.index, ())]
        calls = (n for b in ran for n in (b.function.nodes if b.function is not None else ()))
        return all(b.function is not None and not b.handles for b in ran) and all(
            last_name(n.func) in _RUNNING_NOTHING for n in calls if isinstance(n, ast.Call)
        )

    def switches_some(self, view: View, item: ast.stmt, modules: Iterable[str]) -> bool:
        """Return whether a statement may freeze or free weights of some Modules."""
        body = self.body_of(view, item)
        nodes = body.graph.inside(item) if id(item) in body.graph.spans else ()
        found = {s.subject for n in nodes for s in body.switches.get(n.index, ())}
        for call, inner in (c for n in nodes for c in body.calls.get(n.index, ())):
            for one in inner.any_of or (inner,):
                if self._below[id(one)]:
                    found |= {module for module, _, _ in self._given(call, one)}
        return any(_overlap(f, m) for f in found for m in modules)


@dataclass
class _Frozen(Forward[frozenset[str]]):
    """The Modules that may be frozen, by name."""

    freezing: Freezing
    body: Body
    start: frozenset[str]

    def initial(self, graph: Graph) -> frozenset[str]:
        return self.start

    def join(self, first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
        return first | second

    def transfer(self, node: Node, before: frozenset[str]) -> frozenset[str]:
        for name, value in self.freezing.effects(self.body, node):
            if value:
                before = frozenset(b for b in before if b != name and not b.startswith(f"{name}."))
            else:
                before = before | {name}
        return before


def of(view: View) -> Freezing:
    """Return what is known of a file and of those that run with it."""
    files = view.neighbours
    notes = view.inference.program.notes.setdefault("freezing", {})
    key = tuple(file.path for file in files)
    if key not in notes:
        notes[key] = Freezing(view.inference, files)
    found: Freezing = notes[key]
    return found


def _is_library(view: View, receiver: ast.expr) -> bool:
    """Whether a receiver is of no class of the program: an optimizer, a Tensor, a list."""
    kind = view.kind(receiver)
    own = (a for a in kind if a.kind in ("unknown", "Object", "project", "class") or "::" in a.name)
    return bool(kind) and not any(own)


def _overlap(frozen: str, module: str) -> bool:
    if frozen in (EVERY, module):
        return True
    return frozen.startswith(f"{module}.") or module.startswith(f"{frozen}.")


def _calls(node: Node) -> Iterator[ast.Call]:
    """Yield the calls that are evaluated at a node, those of comprehensions included."""
    for part in evaluated(node):
        waiting: list[ast.AST] = [part]
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.Call):
                yield one
            if not isinstance(one, _DEFINITIONS):
                waiting += children(one)


def is_built(view: View, call: ast.Call) -> bool:
    """Return whether a call builds an optimizer rather than hands one on."""
    return view.atoms(call) == {"Optimizer"} and any(
        a.kind in ("ref", "class", "foreign") for a in without_none(view.kind(call.func))
    )


def _names(node: ast.expr) -> Iterator[str]:
    """The dotted names of ``netD`` or ``[netD_A, netD_B]``; "" for anything else."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for item in node.elts:
            yield from _names(item)
        return
    if isinstance(node, ast.Name) and node.id in ("self", "cls"):
        return
    yield dotted(node)
