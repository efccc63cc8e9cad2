"""Solve the kinds of one unit (function, class body, module) on its control flow graph."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from migrate.analysis.cfg import Edge, Graph, Node, Role, Unit, Why
from migrate.analysis.dataflow import Forward, solve
from migrate.analysis.types import contents, evidence, narrowing, parametric, values
from migrate.analysis.types.annotations import annotated
from migrate.analysis.types.contents import is_given
from migrate.analysis.types.expressions import Evaluator
from migrate.analysis.types.frame import Effects, Environment, Grown, Note, State, joined, widened
from migrate.analysis.types.kinds import (
    NONE,
    NOTHING,
    TENSOR,
    UNKNOWN,
    Kind,
    Site,
    alike,
    element,
    indirect,
    is_all,
    join,
    kind,
    ordered,
    sequence,
    unknown_but_for,
    without_none,
)
from migrate.analysis.types.memos import Memo, iterated
from migrate.analysis.types.python_results import binary
from migrate.syntax.trees import children

ROUNDS = 6  # in which evidence leads to more evidence; what would take longer stays unknown


class _Kinds(Forward[State]):
    """The lattice of states; the transfer of a node is the evaluation of what it holds."""

    def __init__(self, flow: Flow, start: State) -> None:
        self.flow = flow
        self.start = start

    def initial(self, graph: Graph) -> State:
        return self.start

    def join(self, first: State, second: State) -> State:
        return joined(first, second)

    def widen(self, old: State, new: State) -> State:
        return widened(old, new)

    def transfer(self, node: Node, before: State) -> State | None:
        return self.flow.after(node, before)

    def edge(self, edge: Edge, state: State) -> State | None:
        if edge.test is None:
            never = edge.why is Why.EXCEPTION and self.flow.surely_imports(edge.source.part)
            return None if never else state
        return self.flow.outcomes[edge.source.index][edge.why is Why.FALSE]


@dataclass
class Flow(Evaluator):
    """The kinds of a unit: its variables, the attributes it stores on ``self``, its result.

    ``stores`` joins what the attributes of the first parameter (``self``) were bound to; ``grown``
    what was put into containers, by site; ``result`` joins what is returned. While the unit is
    being solved these hold what is known so far; ``before`` is the result of an earlier solution,
    which holds until this one is ``done``. ``evidence`` is what the unit proves of its parameters,
    ``shown`` what all its solutions proved.
    """

    stores: Environment = field(default_factory=dict)
    result: Kind = NOTHING
    before: Kind = NOTHING
    done: bool = False
    evidence: Environment = field(default_factory=dict)
    shown: Environment = field(default_factory=dict)
    outcomes: dict[int, tuple[State | None, State | None]] = field(default_factory=dict)
    at: dict[int, Effects] = field(default_factory=dict)
    grown: dict[Site, Grown] = field(default_factory=dict)
    memos: dict[int, Memo] = field(default_factory=dict)

    # -- the solution ---------------------------------------------------------------------------

    def solve(self, unit: Unit, given: Environment, around: State | None = None) -> None:
        """Solve the unit, entered with these variables, until its own evidence adds nothing.

        ``around``: the state in which the body of a class runs.
        """
        graph = self.world.graph(unit)
        around = around or State({}, {}, {})
        near: set[str] = set()
        for _ in range(ROUNDS):
            self._solve(graph, given, near, around)
            events = {i: e.events for i, e in self.at.items() if e.events}
            found = evidence.proofs(graph, events, given, self._absent)
            proved = {n: k for n, k in found.parameters.items() if n not in self.examined}
            self.evidence |= proved
            proved = {n: k for n, k in proved.items() if unknown_but_for(k, given[n])}
            more = found.kinds.keys() - self.known.keys()
            if not (proved or more or found.beside - self.beside or found.near - near):
                break
            given = given | {
                n: alike(k, without_none(given[n])) | (given[n] & NONE) for n, k in proved.items()
            }
            self.known |= {target: found.kinds[target] for target in more}
            self.beside |= found.beside
            near |= found.near
        self.shown |= self.evidence
        self.done = True

    def _solve(
        self, graph: Graph, given: Environment, near: Collection[str], around: State
    ) -> None:
        notes = {name: Note(near=True) for name in near}
        entered = {n: self._entered_with(n, v) for n, v in given.items()}
        start = State(around.env | entered, around.notes | notes, around.paths)
        self.prunes, self.pruned = True, False
        while True:
            self.variables = {n: contents.bare(v) for n, v in entered.items()}
            self.at, self.outcomes = {}, {}
            solution = solve(_Kinds(self, start), graph)
            reached = all(n is graph.raised or solution.before(n) for n in graph.order)
            if reached or not (self.prunes and self.pruned):
                break
            self.prunes = False
        for node in graph.nodes:
            if solution.before(node) is None:
                self.after(node, State({}, {}, {}), keep=False)
                del self.at[node.index]
        self._collect(entered)

    def _entered_with(self, name: str, value: Kind) -> Kind:
        """Return what a parameter is at the entry; several may be one container."""
        function = self.function
        if contents.is_plain(value) or function is None:
            return self.with_inside(name, value)[0]
        if site := parametric.default_site(function, name):
            value = contents.received(value, site)
        shared = self.world.may_share(function)
        return self.with_inside(name, contents.received(value, ("" if shared else name,)))[0]

    def _collect(self, entered: Environment) -> None:
        """Join what the points of the unit have done, each as it was evaluated last."""
        self.variables, self.stores, self.grown = dict(entered), {}, {}
        self.result = NOTHING
        for effects in self.at.values():
            for into, found in (
                (self.variables, effects.bound),
                (self.stores, effects.stores),
            ):
                for name, value in found.items():
                    known = into.get(name)
                    if known is not value:
                        into[name] = value if known is None else join(known, value)
            for site, (added, keys) in effects.grown.items():
                known, others = self.grown.get(site, (NOTHING, frozenset()))
                self.grown[site] = (join(known, added), keys | others)
            if effects.result:
                self.result = join(self.result, effects.result)
        for kinds in (self.variables, self.stores):
            for name, value in kinds.items():
                if not contents.is_plain(value):
                    kinds[name] = self.seen_from_outside(value)
        self.result = self.seen_from_outside(self.result)

    def seen_from_outside(self, value: Kind) -> Kind:
        """Return a value with all that was ever put into it, and without the sites of the unit."""
        if contents.is_plain(value):
            return value
        inside = contents.all_sites(value)
        for site in inside & self.grown.keys():
            added, keys = self.grown[site]
            for key in sorted(keys) or [""]:
                value = contents.grown(value, frozenset((site,)), added, key)
        return contents.bare(value)

    @property
    def put_into_given(self) -> dict[Site, Kind]:
        """What the unit puts into containers among its arguments, by their sites."""
        return {s: contents.of_given(k) for s, (k, _) in self.grown.items() if is_given(s)}

    @property
    def kept(self) -> set[tuple[Site, str]]:
        """Arguments, with the attributes and globals that alias them at the exit."""
        given = (s for s in self.links if is_given(s))
        linked = ((g, self.linked_here(frozenset((g,)))) for g in given)
        return {(g, s) for g, sites in linked for s in sites if isinstance(s, str)}

    @property
    def joined_outside(self) -> dict[str, frozenset[str]]:
        """The sites of attributes and globals, with those that hold the same from then on."""
        found = {}
        for site in (s for s in self.links if isinstance(s, str) and s[0] != "."):
            others = (s for s in self.linked_here(frozenset((site,))) if isinstance(s, str))
            if joined := frozenset(s for s in others if s[0] != "." and s != site):
                found[site] = joined
        return found

    def _absent(self, edge: Edge) -> list[str]:
        """Return the variables that are None where a test comes out so."""
        assert edge.test is not None
        state = self.outcomes[edge.source.index][edge.why is Why.FALSE]
        names = (n.id for n in ast.walk(edge.test) if isinstance(n, ast.Name))
        return [n for n in names if state is not None and state.env.get(n) == NONE]

    def after(self, node: Node, before: State, keep: bool = True) -> State | None:
        """Evaluate what a node holds in a state; return the state after it.

        What it came to in the same state before, in this walk or the last one, holds as long as all
        that it has read is what it was. ``keep``: whether control comes to the node at all.
        """
        last, memo = self.at.get(node.index), self.memos.get(node.index)
        for assumed in last.assumed if last is not None else ():
            self.assumed.pop(assumed, None)
        if keep and memo is not None and self._holds(memo, node, before):
            return self._again(node, memo)
        self.effects = self.at[node.index] = Effects()
        reads, joined = self.world.traced(True), len(self.joined)
        self.enter(before)
        part = node.part
        if node.role in (Role.STATEMENT, Role.DEFINITION):
            assert part is not None
            if isinstance(part, ast.expr):
                self.returned(indirect(self.kind(part)))
            else:
                method = getattr(self, f"_{type(part).__name__}", None)
                (method or self._plain)(part)
        elif part is not None:
            _EVALUATE[node.role](self, node)
        same = self.env is before.env and self.paths is before.paths
        after = before if same and self.notes is before.notes else self.leave()
        self.world.traced(False)
        if keep and self.effects.lasting and node.role is not Role.DEFINITION:
            outcome, links = self.outcomes.get(node.index), (self.joined, joined)
            made = Memo(before, after, outcome, self.effects, reads, links, self.prunes)
            self.memos[node.index] = made
        else:
            self.memos.pop(node.index, None)
        return after

    def _holds(self, memo: Memo, node: Node, before: State) -> bool:
        """Return whether a node would come to the same as before."""
        joined, count = memo.links
        return (
            memo.prunes == self.prunes
            and len(self.joined) == count
            and (joined is self.joined or not count or joined[:count] == self.joined)
            and not (self.function is not None and self.function.globals)
            and all(
                self.known.get(t) == known and (t in self.beside) == beside
                for t, known, beside in memo.effects.recalled
            )
            and (memo.before is before or memo.before == before or memo.holds_for(node, before))
            and self.world.unchanged(memo.reads)
        )

    def _again(self, node: Node, memo: Memo) -> State | None:
        """Do what a node did before; return the state after it."""
        self.effects = effects = self.at[node.index] = memo.effects
        if memo.outcome is not None:
            self.outcomes[node.index] = memo.outcome
        self.assumed |= effects.assumed
        self.pruned |= effects.pruned
        for into, found in (
            (self.variables, effects.bound),
            (self.stores, effects.stores),
            (self.inner, effects.inner),
        ):
            for name, value in found.items():
                into[name] = join(into.get(name, NOTHING), value)
        self.result = join(self.result, effects.result)
        for site, other in effects.links:
            self.links.setdefault(site, set()).add(other)
            self.links.setdefault(other, set()).add(site)
            self.joined.append((site, other))
        return memo.after

    def surely_imports(self, node: ast.AST | None) -> bool:
        """Return whether a statement imports what torch surely has, so that no handler sees it."""
        return (
            isinstance(node, ast.ImportFrom)
            and not node.level
            and all(self.world.table.kind(f"{node.module}.{a.name}") for a in node.names)
        )

    # -- points of compound statements ----------------------------------------------------------

    def _test(self, node: Node) -> None:
        part = node.part
        test = part.test if isinstance(part, ast.Assert) else part
        assert isinstance(test, ast.expr)
        _, false = self.outcomes[node.index] = self.tested(test)
        if isinstance(part, ast.Assert) and part.msg is not None:
            after = self.leave()
            self.enter(false or after)
            self.kind(part.msg)
            self.enter(after)

    def _iterate(self, node: Node) -> None:
        assert isinstance(node.part, ast.expr)
        self.assign(iterated(node.statement), self.kind(node.part))

    def _next(self, node: Node) -> None:
        assert isinstance(node.part, ast.expr)
        self.bind(node.part, element(self.env.get(iterated(node.statement), UNKNOWN)))

    def _enter_with(self, node: Node) -> None:
        item = node.part
        assert isinstance(item, ast.withitem)
        value = self.kind(item.context_expr)
        if item.optional_vars is not None:
            self.bind(item.optional_vars, self._entered(value))

    def _entered(self, value: Kind) -> Kind:
        """Return what ``with value as x`` binds."""
        found: list[Kind] = []
        for atom in ordered(value):
            if atom.kind == "iterator":  # what a function with @contextmanager yields
                found.append(element(frozenset((atom,))))
            elif atom.kind in ("Object", "Module") and "::" in atom.name:
                enters = self.world.member(atom.name, "__enter__")
                functions = [self.world.function_of(a.name) for a in ordered(enters)]
                found += [self.world.returns(f) if f else UNKNOWN for f in functions]
            else:
                found.append(frozenset((atom,)))
        return join(*found) or UNKNOWN

    def _handler(self, node: Node) -> None:
        handler = node.part
        assert isinstance(handler, ast.ExceptHandler)
        if handler.type is not None:
            self.kind(handler.type)
        if handler.name:
            self.bound(handler.name, kind("instance", "exception"))

    def _unbind(self, node: Node) -> None:
        assert isinstance(node.part, ast.ExceptHandler)
        if node.part.name:
            self.forget(node.part.name)

    def _subject(self, node: Node) -> None:
        self._iterate(node)

    def _case(self, node: Node) -> None:
        pattern, match = node.part, node.statement
        assert isinstance(pattern, ast.pattern) and isinstance(match, ast.Match)
        value = self.env.get(iterated(match), UNKNOWN)
        for part in ast.walk(pattern):
            for expression in _evaluated(part):
                self.kind(expression)
        whole = pattern
        while isinstance(whole, ast.MatchAs) and whole.pattern is not None:
            whole = whole.pattern
        if isinstance(whole, ast.MatchClass):
            tested = self.world.kinds.get(id(whole.cls), UNKNOWN)
            value = narrowing.holding(value, tested, self.world) or value
            if isinstance(match.subject, ast.Name) and match.subject.id in self.env:
                self.assign(match.subject.id, value)
        for part in ast.walk(pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                is_whole = isinstance(part, ast.MatchAs) and narrowing.is_whole(part, pattern)
                self.bound(name, indirect(value) if is_whole else UNKNOWN)

    # -- simple statements ----------------------------------------------------------------------

    def _plain(self, node: ast.AST) -> None:
        for child in children(node):
            if isinstance(child, ast.expr):
                self.kind(child)

    def stored(self, target: ast.Attribute, value: Kind) -> None:
        """Store an attribute; what other names of the object knew of it may be this as well."""
        own = target.value.id if isinstance(target.value, ast.Name) else ""
        if not contents.is_plain(value):
            for site in contents.of_attribute(target.attr, self.world.kinds[id(target.value)]):
                self.link(value, site)
        self._own()
        for path, known in self.paths.items():
            root, name = path
            if name == target.attr and root != own:
                self.effects.wide = True
                if self._may_be_one(root, target.value):
                    self.paths[path] = join(known, value)
        if own:
            self.paths[own, target.attr] = value
            if own == self.first_parameter:
                self.stores_on_self(target.attr, value)

    def _may_be_one(self, name: str, other: ast.expr) -> bool:
        """Return whether a variable and an expression may be the same object."""
        first = self.env.get(name, UNKNOWN)
        second = self.world.kinds.get(id(other), UNKNOWN)
        sure = {a.name for a in first} if is_all(first, "Object") else None
        others = {a.name for a in second} if is_all(second, "Object") else None
        return sure is None or others is None or not sure.isdisjoint(others)

    def stores_on_self(self, name: str, value: Kind) -> None:
        """Note what an attribute of the first parameter is bound to."""
        for stores in (self.stores, self.effects.stores):
            stores[name] = join(stores.get(name, NOTHING), value)

    def returned(self, value: Kind) -> None:
        """Note what the unit returns or yields."""
        self.result = join(self.result, value)
        self.effects.result = join(self.effects.result, value)

    def _Assign(self, node: ast.Assign) -> None:
        value = self.kind(node.value)
        moved, held = evidence.moved_itself(node), evidence.moved_elements(node)
        same = evidence.same_objects(node)
        names = {k: o for k, (o, _) in held.items()} if value == UNKNOWN else {}
        for target in node.targets:
            self.bind(target, value, same, names)
        for name, call in moved.items():
            if self.env.get(name) == UNKNOWN:
                self.annotate(name, Note(near=self.note(name).near, moved=call))
        for key, (origin, call) in held.items():
            name = key.removesuffix(evidence.INSIDE)
            unpacked = self.env.get(name) == UNKNOWN
            inside = "" if unpacked else key.removeprefix(name) + evidence.INSIDE
            self.effects.events.append(evidence.Bound(name + inside, origin, UNKNOWN))
            self.annotate(name, Note(moved=call, inside=inside))

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        value = self.kind(node.value) if node.value is not None else NOTHING
        self.kind(node.annotation)
        written = values.resolved(annotated(node.annotation, self.world.kinds), self.world)
        if node.value is not None:
            if written == UNKNOWN and self.world.is_field(node):
                value = join(value, UNKNOWN)
            self.bind(node.target, value if written == UNKNOWN else _refine(written, value))
        elif not isinstance(node.target, ast.Attribute) or written != UNKNOWN:
            self.bind(node.target, written)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        load = self.kind(node.target)
        other = self.kind(node.value)
        self.saw_beside(node.target, other)
        self.saw_beside(node.value, load)
        self.world.kinds[id(node)] = load
        shared = frozenset(a for a in load if contents.is_container(a))
        if shared:  # ``items += others`` changes the very object
            for atom in shared:
                held = element(other) if atom.kind == "list" else join(*contents.values(other))
                self.put(frozenset((atom,)), held, contents.ANY_KEY)
            now = self.kind(node.target)
            kept = frozenset(a for a in now if contents.is_container(a))
            value = join(kept, binary(node.op, load - shared, other) if load - shared else NOTHING)
        else:
            value = contents.made_at(self.operated(node.op, load, other, False), id(node))
        stays = value == UNKNOWN and not is_all(load, "int", "float", "bool")
        self.bind(node.target, load if stays else value)  # 0 += x is a Tensor if x is one

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.forget(target.id)
            else:
                self.kind(target)

    # -- definitions and imports ----------------------------------------------------------------

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.kind(decorator)
        a = node.args
        for default in (*a.defaults, *a.kw_defaults):
            if default is not None:
                self.kind(default)
        for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
            if arg is not None and arg.annotation is not None:
                self.kind(arg.annotation)
        if node.returns is not None:
            self.kind(node.returns)
        file = self.world.program.files[self.path]
        function = file.functions[id(node)]
        if function.owner is None:
            self.bound(node.name, kind("function", function.key))

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.kind(part)
        key = self.world.program.files[self.path].classes[id(node)].key
        self.bound(node.name, kind("class", key))
        body = Flow(self.world, self.path, self.function, assumed=self.assumed)
        body.solve(node, {}, self.leave())
        self.world.class_body(key, body.variables)

    def _lasting(self, node: ast.Import | ast.ImportFrom) -> list[ast.alias]:
        """Return the names of an import, those apart that the next imports bind anew."""
        if gone := self.world.program.files[self.path].shadowed:
            return [alias for alias in node.names if id(alias) not in gone]
        return node.names

    def _Import(self, node: ast.Import) -> None:
        for alias in self._lasting(node):
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            self.bound(alias.asname or whole, self.world.imported(self.path, whole, 0, None))

    def _ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in self._lasting(node):
            if alias.name == "*":
                for name, value in self.world.star(
                    self.path, node.module or "", node.level
                ).items():
                    self.bound(name, value)
                continue
            found = self.world.imported(self.path, node.module or "", node.level, alias.name)
            self.bound(alias.asname or alias.name, found)

    def _Return(self, node: ast.Return) -> None:
        value = self.kind(node.value) if node.value is not None else NONE
        self.returned(indirect(value))

    def _Expr(self, node: ast.Expr) -> None:
        self.kind(node.value)
        call = node.value
        if not isinstance(call, ast.Call):
            return
        name = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
            self._registered(call, name, 0)
        elif (
            name == "setattr"  # what another object gets is stored from outside
            and call.args
            and getattr(call.args[0], "id", "") == self.first_parameter
        ):
            self._registered(call, name, 1)

    def _registered(self, call: ast.Call, name: str, at: int) -> None:
        """``self.register_buffer("mask", value)`` stores an attribute like an assignment."""
        if len(call.args) <= at:
            return
        key = call.args[at]
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return
        named = [k.value for k in call.keywords if k.arg in ("tensor", "param", "module")]
        value = TENSOR
        for given in (*call.args[at + 1 : at + 2], *named[:1]):
            found = indirect(self.world.kinds.get(id(given), UNKNOWN))
            value = TENSOR | (found & NONE) if name in _OF_TENSORS else found
        self.stores_on_self(key.value, value)

    def _Yield(self, node: ast.Yield) -> Kind:
        value = self.kind(node.value) if node.value else NONE
        self.returned(sequence("iterator", indirect(value)))
        return UNKNOWN


def _refine(written: Kind, value: Kind) -> Kind:
    """The annotated kind, with the details that the value adds."""
    detail = frozenset(a for a in value if any(a.kind == w.kind for w in written))
    return detail or written


_OF_TENSORS = ("register_buffer", "register_parameter")
_EVALUATE = {
    Role.TEST: Flow._test,
    Role.ITERATE: Flow._iterate,
    Role.BIND: Flow._next,
    Role.ENTER: Flow._enter_with,
    Role.LEAVE: lambda flow, node: None,
    Role.HANDLER: Flow._handler,
    Role.UNBIND: Flow._unbind,
    Role.SUBJECT: Flow._subject,
    Role.CASE: Flow._case,
}


def _evaluated(part: ast.AST) -> list[ast.expr]:
    """Return the expressions of a pattern: values, keys, classes."""
    if isinstance(part, ast.MatchMapping):
        return part.keys
    found = getattr(part, "value" if isinstance(part, ast.MatchValue) else "cls", None)
    return [found] if isinstance(found, ast.expr) else []
