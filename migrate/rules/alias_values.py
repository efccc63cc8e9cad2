"""In: an expression at some point of a function. Out: the storages that its value may share."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable

from migrate.analysis.cfg import Graph, Unit, graph_of
from migrate.analysis.program import Function
from migrate.analysis.storage import (
    ELEMENTS,
    MAYBE,
    NO_REFS,
    REGISTRIES,
    SAME,
    VIEW,
    Ref,
    Refs,
    Region,
    State,
    joined,
    made_as,
    node_of,
    path_of,
    regions,
    root,
    twice,
    wholes,
)
from migrate.analysis.types.kinds import ARRAY, holds_no_tensor, is_all
from migrate.rules.alias_findings import Findings, Summary
from migrate.rules.buffers import is_snapshot
from migrate.rules.stopped import is_stopped
from migrate.rules.torch_sharing import DIVIDING, METADATA, is_view_name
from migrate.rules.views import bound
from migrate.rules.written import entry_of, key_of, sure_rounds
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_names, children, last_name

MODULE_ONLY = frozenset("parameters named_parameters buffers named_buffers state_dict modules "
                        "named_modules children named_children".split())  # fmt: skip
GATHERING = frozenset("list tuple dict set".split())  # operators join what they hold


class Values:
    """Evaluates expressions; reads of what went stale are noted."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.state, self.found = scene, State(), Findings()
        self.flight: list[tuple[str, Refs]] = []
        self.waiting: list[tuple[str, Refs]] = []  # values of an unpacking, not yet bound
        self.closures: dict[Region, tuple[str, ...]] = {}
        self.linked: dict[Region, Refs] = {}  # what a copy was taken from by an index
        self.whole: set[Hashable] = set()  # places that make a tensor with memory of its own
        self.divisions: set[Hashable] = set()  # places that divide one

    def graph(self, unit: Unit, function: Function | None, entered: frozenset[int]) -> Graph:
        """Return the control flow of a function whose loops over layers, and some others, by id, go
        round once at least."""
        entered |= sure_rounds(self.scene, function)
        return graph_of(unit, entered=entered) if entered else self.scene.inference.graph(unit)

    def value(self, node: ast.expr) -> Refs:
        method = getattr(self, "_" + type(node).__name__, None)
        refs: Refs = method(node) if method is not None else self._fresh(node)
        if not refs or not holds_no_tensor(self.scene.kind(node)):
            return refs
        if not self._may_grow(node):
            return NO_REFS
        return self.made(node) if isinstance(node, ast.Call) else refs

    def _is_plain(self, node: ast.AST) -> bool:
        return holds_no_tensor(self.scene.kind(node)) and not self._may_grow(node)

    def _may_grow(self, node: ast.AST) -> bool:
        """Return whether a value is a list of numbers, in which a Tensor may be put later."""
        return "list" in self.scene.kind_names(node)

    def _parts(self, node: ast.AST) -> None:
        for child in children(node):
            if isinstance(child, ast.expr):
                self.value(child)
            elif not isinstance(child, ast.stmt):
                self._parts(child)

    def _fresh(self, node: ast.expr) -> Refs:
        """A value of its own, once its parts are evaluated."""
        self._parts(node)
        return self.made(node)

    def made(self, node: ast.AST) -> Refs:
        return frozenset((self.state.make(id(node)),))

    def with_linked(self, refs: Refs) -> Refs:
        """Return what setting an element changes in MindSpore: copies that an index gave know
        what they were taken from, and parts what was divided."""
        found, todo = refs, refs
        while todo:
            whole = [above for r in todo for above in wholes(r.region)]
            new = {("new", *r[1:]) if r[0] == "old" else r for r in whole}
            held = NO_REFS.union(*(self.linked.get(region, NO_REFS) for region in new))
            todo = made_as(held, VIEW) - found
            found |= todo
        return found

    # -- names and reads ----------------------------------------------------------------------

    def look(self, name: str) -> Refs:
        return self.state.names.get(name, frozenset((Ref(("outer", name)),)))

    def read(self, name: str, refs: Refs) -> None:
        """Note which writes a reader of these has missed."""
        todo, passed = [refs], set[str]()
        while todo:  # what functions made here have of its names is read with them
            for ref in self.state.reach(todo.pop()):
                self._note_read(name, ref)
                for inner in self.closures.get(ref.region, ()):
                    known = inner in self.state.names and inner not in passed
                    if known and not self._captures(inner):
                        passed.add(inner)
                        todo.append(self.state.names[inner])

    def _note_read(self, name: str, ref: Ref) -> None:
        if self.state.written:
            whole = root(ref.region)
            while whole[0] == "maybe":  # an attribute of what an unknown function made of it
                whole = root(whole[1])  # type: ignore[arg-type]
            if whole[0] == "param":
                path = path_of(ref.region) or (str(whole[1]),)
                self.found.behind |= {(by, path) for by in self.state.written}
        if ref.stale > 0:
            self.found.seen.setdefault(ref.stale, name)
        elif ref.stale < 0:
            self.found.renewed.add(-ref.stale)

    def touch(self, node: ast.AST, name: str, refs: Refs) -> None:
        """Note a read that a gradient may go through, of what took a value without it."""
        for ref in refs:
            path = path_of(ref.region)
            if len(path) > 1 and path not in self.found.asked and not self._is_quiet(node):
                self.found.asked.add(path)
            for by in self.state.cut.get(ref.region, ()):
                if by not in self.found.cut and not self._is_quiet(node):
                    self.found.cut[by] = name

    def _is_quiet(self, node: ast.AST) -> bool:
        """Whether a read is cut off from the gradient."""
        parent = self.scene.parent(node)
        cut = isinstance(parent, ast.Attribute) and parent.attr in (*METADATA, "detach", "data")
        return cut or is_stopped(self.scene, self.scene.file, node)

    def _captures(self, name: str) -> bool:
        return any(r.region in self.closures for r in self.state.names[name])

    def holders(self, node: ast.expr) -> Refs:
        """Return the objects whose attribute or element is read: not all of their contents are."""
        if isinstance(node, ast.Name):
            return self.look(node.id)
        if isinstance(node, ast.Attribute) and node.attr in REGISTRIES:
            return self.holders(node.value)  # its entries are the attributes
        if isinstance(node, ast.Attribute) and not self._tensor(node.value):
            found = self.operated(node)
            return self.state.get(self.holders(node.value), node.attr) if found is None else found
        return self.value(node)

    def operated(self, node: ast.AST, *only: str) -> Refs | None:
        """Return what methods of the program give that a node runs; None: it runs none."""
        raise NotImplementedError  # in alias_walk

    def _tensor(self, node: ast.expr) -> bool:
        return is_all(self.scene.kind(node), "Tensor")

    def _maybe_tensor(self, node: ast.expr) -> bool:
        names = self.scene.kind_names(node)
        return (not names or bool(names & {"Tensor", "unknown"})) and not self._is_asked(node)

    def _maybe_memory(self, node: ast.expr) -> bool:
        """Return whether a value may be a Tensor, or an array, which may be a Tensor's memory."""
        return self._maybe_tensor(node) or bool(self.scene.kind(node) & ARRAY)

    def _is_asked(self, node: ast.expr) -> bool:
        """Return whether a variable is bound once and has an attribute that only Modules have."""
        function = self.scene.function(node)
        name = node.id if isinstance(node, ast.Name) else ""
        while function is not None and name not in function.locals:
            function = function.parent
        if function is None:
            return False
        given = [n for n in function.of(ast.arg) if getattr(n, "arg", "") == name]
        if len(function.stores.get(name, ())) + len(given) != 1:
            return False
        uses = (n for n in function.of(ast.Attribute) if getattr(n, "attr", "") in MODULE_ONLY)
        return any(getattr(getattr(n, "value", None), "id", "") == name for n in uses)

    def _Name(self, node: ast.Name) -> Refs:
        refs = self.look(node.id)
        if self._is_plain(node):
            return NO_REFS
        self.read(node.id, refs)
        self.touch(node, node.id, refs)
        self.flight.append((node.id, refs))
        return refs

    def _NamedExpr(self, node: ast.NamedExpr) -> Refs:
        self.bind(node.target, refs := self.value(node.value))
        return refs

    def _Attribute(self, node: ast.Attribute) -> Refs:
        if node.attr in METADATA and self._maybe_memory(node.value):
            self.holders(node.value)
            return NO_REFS
        if self._tensor(node.value):
            refs = self.value(node.value)
            return (
                made_as(refs, SAME if node.attr == "data" else VIEW)
                if (is_view_name(node.attr))
                else self.state.get(refs, node.attr)
            )
        holders = self.holders(node.value)
        if is_all(self.scene.kind(node.value), "tuple"):  # x.max(0).values
            refs = self.elements(holders)
        else:
            refs = self.state.get(holders, node.attr)
        self.read(ast.unparse(node), refs)
        self.touch(node, ast.unparse(node), refs)
        self.flight.append((ast.unparse(node), refs))
        if is_snapshot(self.scene, node):
            return self.made(node)
        if is_view_name(node.attr) and self._maybe_memory(node.value):
            refs |= made_as(holders, SAME if node.attr == "data" else VIEW)
        return refs

    def _Subscript(self, node: ast.Subscript) -> Refs:
        if self._tensor(node.value):
            refs = self.value(node.value)
            self.value(node.slice)
            if not self._copies(node.slice):
                return made_as(refs, VIEW)
            made = self.made(node)
            for ref in made:  # MindSpore sets an element of it in what was indexed as well
                self.linked[ref.region] = self.linked.get(ref.region, NO_REFS) | refs
            return made
        holders = self.holders(node.value)
        self.value(node.slice)
        entry = entry_of(node)
        refs = self.state.get(holders, entry) if entry else self.elements(holders)
        self.read(ast.unparse(node.value), refs)
        maybe = self._maybe_memory(node.value)
        if isinstance(node.slice, ast.Slice) and (not maybe or self._is_sequence(holders)):
            made = self.made(node)  # a list of its own, of the same elements
            self.state.put(made, ELEMENTS, refs)
            refs = made
        if maybe:
            refs |= made_as(holders, VIEW if getattr(node.value, "attr", "") == "data" else SAME)
            self.read(ast.unparse(node.value), refs)
        return refs

    def _is_sequence(self, holders: Refs) -> bool:
        """Return whether it is seen that some value is a container."""
        return any((r.region, ELEMENTS) in self.state.inside for r in holders)

    def _copies(self, index: ast.expr) -> bool:
        """Return whether an index surely copies: a list of numbers, alone or beside others, or a
        mask by comparison.
        """
        if isinstance(index, ast.Tuple):
            kinds = (self.scene.kind(part) for part in index.elts)
            return any(is_all(kind, "list") for kind in kinds)
        if isinstance(index, (ast.Compare, ast.List)):
            return True
        kind = self.scene.kind(index)  # with slices in it a list stands for a tuple
        items = [item for atom in kind for item in atom.items]
        return is_all(kind, "list") and bool(items) and all(is_all(i, "int") for i in items)

    def elements(self, holders: Refs) -> Refs:
        """Return the elements that iteration yields; a view of a tensor yields views of it.

        So does a result of torch that is no Tensor: a tuple of Tensors.
        """
        found = self.state.get(holders, ELEMENTS)
        return found | frozenset(
            r._replace(how=max(r.how, VIEW))
            for r in holders
            if (r.how or r.region[0] in ("new", "old")) and not self._has_elements(r.region)
        )

    def contents(self, holders: Refs) -> Refs:
        """Return the elements where the kind does not tell a tensor from a container."""
        unknown = frozenset(r for r in holders if not self._has_elements(r.region))
        return self.elements(holders) | made_as(unknown, VIEW)

    def _has_elements(self, region: Region) -> bool:
        """Return whether it is a container; what was there at the first look may be rows."""
        held = self.state.inside.get((region, ELEMENTS))
        first = ("field", region, ELEMENTS)
        return held is not None and (not held or any(r.region != first for r in held))

    # -- new tensors, whole and divided -----------------------------------------------------------

    def made_whole(self, node: ast.AST) -> Refs:
        """Return what a node makes: a tensor that is all of its storage, each element once."""
        self.whole.add(id(node))
        return self.made(node)

    def is_divided(self, node: ast.Call, refs: Refs) -> bool:
        """Return whether a statement divides new tensors that nothing reads behind it."""
        user: ast.AST = node
        item = self.scene.parent(node)
        while item is not None and _goes_over(item, user):
            user, item = item, self.scene.parent(item)
        if not isinstance(item, (ast.Assign, ast.Return)) or item.value is not user:
            return False
        own = regions(refs)
        inside = any(not own.isdisjoint(regions(held)) for held in self.state.inside.values())
        if not self._is_whole(refs) or inside:
            return False
        names = (n for n, held in self.state.names.items() if not own.isdisjoint(regions(held)))
        return not any(n not in bound(item) and self.scene.facts.read_after(n, item) for n in names)

    def divided(self, node: ast.Call) -> Refs:
        """Return the parts of a tensor: no two of them have an element in common."""
        made = self.made(node)
        for ref in made:  # MindSpore sets an element of one in all of them
            self.divisions.add(id(node))
            self.linked[ref.region] = made_as(made, VIEW)
        return made

    def given_anew(self, node: ast.Call, summary: Summary) -> Refs:
        """Return what a function of the program makes."""
        if summary.divided:
            return self.divided(node)
        return self.made_whole(node) if summary.whole else self.made(node)

    def note_returned(self, value: ast.expr, refs: Refs) -> None:
        """Note whether a result is a new tensor, and whether two parts of it may be one."""
        self.found.whole = self._is_whole(refs) and self.found.whole is not False
        parts = bool(refs) and all(self._is_new(r, self.divisions) for r in refs)
        self.found.divided |= parts
        if not self._tensor(value) and not parts:
            self.found.tied |= any(r.region[0] != "param" for r in refs)

    def _is_whole(self, refs: Refs) -> bool:
        return bool(refs) and all(self._is_new(r, self.whole) for r in refs)

    def _is_new(self, ref: Ref, places: set[Hashable]) -> bool:
        return (
            ref.how == SAME
            and not ref.stale
            and ref.region[0] == "new"
            and (node_of(ref.region) in places)
        )

    # -- displays, operators ----------------------------------------------------------------------

    def _Constant(self, node: ast.Constant) -> Refs:
        return NO_REFS

    def _container(self, node: ast.expr, parts: Iterable[ast.expr | None]) -> Refs:
        return self.displayed(node, [self.value(part) for part in parts if part is not None])

    def displayed(self, node: ast.expr, found: Iterable[Refs]) -> Refs:
        """Return a container that is written out, of what its parts hold."""
        made, found = self.made(node), list(found)
        held = NO_REFS.union(*found)
        self.state.put(made, ELEMENTS, held | twice(found))  # none is known of an empty one, too
        return made

    def _Tuple(self, node: ast.Tuple) -> Refs:
        return self._container(node, node.elts)

    def _List(self, node: ast.List) -> Refs:
        return self._container(node, node.elts)

    def _Set(self, node: ast.Set) -> Refs:
        return self._container(node, node.elts)

    def _Dict(self, node: ast.Dict) -> Refs:
        """Keep what lies under keys that are written out apart, where all of them are."""
        self._container(node, node.keys)
        keys = [key_of(key) if key is not None else "" for key in node.keys]
        if not all(keys):
            held = [self.value(part) for part in node.values]
            known = zip(node.keys, held, strict=True)
            return self.displayed(node, [r if k else self.elements(r) for k, r in known])
        return self.entries(node, zip(keys, map(self.value, node.values), strict=True))

    def entries(self, node: ast.expr, found: Iterable[tuple[str, Refs]]) -> Refs:
        """Return a dict that is written out, of its entries."""
        # a number is kept as well: what else lies under its key came from elsewhere
        held = [(key, refs) for key, refs in found if refs or key.startswith("['")]
        made = self.displayed(node, ())
        for key, refs in held:
            self.state.put(made, key, refs, anew=True)
        return made

    def _Starred(self, node: ast.Starred) -> Refs:
        return self.elements(self.value(node.value))

    def _BinOp(self, node: ast.BinOp) -> Refs:
        """Numbers and tensors give a new tensor; lists and dicts share their elements."""
        sides = {side: self.value(side) for side in (node.left, node.right)}
        both = NO_REFS.union(*sides.values())
        made = self.made_whole(node)
        if GATHERING & self.scene.kind_names(node):
            surely = is_all(self.scene.kind(node), *GATHERING)
            held = made_as(self.elements(both), SAME if surely else MAYBE)
            if isinstance(node.op, ast.Mult):  # each of them more than once
                held |= made_as(held, MAYBE)
            else:
                held |= twice([self.elements(refs) for refs in sides.values()])
            self.state.put(made, ELEMENTS, held)
        elif not self._tensor(node):
            arrays = (s for s in sides if is_all(self.scene.kind(s), "instance"))
            some = both.difference(*(sides[side] for side in arrays))
            known = frozenset(r for r in some if (r.region, ELEMENTS) in self.state.inside)
            if known:  # no kind is needed where it is seen that they are containers
                self.state.put(made, ELEMENTS, self.state.get(known, ELEMENTS))
        return made

    def _BoolOp(self, node: ast.BoolOp) -> Refs:
        refs = self.value(node.values[0])
        for part in node.values[1:]:
            refs |= self._either(part, None)
        return refs

    def _IfExp(self, node: ast.IfExp) -> Refs:
        self.value(node.test)
        return self._either(node.body, node.orelse)

    def _either(self, first: ast.expr, second: ast.expr | None) -> Refs:
        """One of two values is computed, or perhaps none."""
        before, flight = self.state, list(self.flight)
        self.state = before.copy()
        refs = self.value(first)
        end, self.state = self.state, before.copy()
        self.flight, more = flight, self.flight
        if second is not None:
            refs |= self.value(second)
        self.flight = [*self.flight, *(m for m in more if m not in self.flight)]
        self.state = joined((end, self.state)) or end
        return refs

    def _Lambda(self, node: ast.Lambda) -> Refs:
        return self.closure(node)

    def closure(self, node: ast.AST) -> Refs:
        """Return a function made here: its aliases may read what it captured."""
        made = self.made(node)
        names = all_names(node)
        self.closures[next(iter(made)).region] = tuple(sorted(names))
        arguments = getattr(node, "args", None)
        for default in (*arguments.defaults, *arguments.kw_defaults) if arguments else ():
            if isinstance(default, ast.Name):  # evaluated now, read by each call
                self.state.put(made, ELEMENTS, self.value(default))
        self.read("", made)
        return made

    def _comprehension(self, node: ast.expr) -> Refs:
        before = dict(self.state.names)
        bound: set[str] = set()
        rounds: list[Refs] = []
        for _ in range(2):
            for clause in getattr(node, "generators", ()):
                self.bind(
                    clause.target, self.each(clause.iter) | (self.operated(clause) or NO_REFS)
                )
                bound |= all_names(clause.target)
                for test in clause.ifs:
                    self.value(test)
            if isinstance(node, ast.DictComp):
                self.value(node.key)
            rounds.append(self.value(getattr(node, "elt", None) or node.value))  # type: ignore[attr-defined]
        for name in bound:
            self.state.names.pop(name, None)
            if name in before:
                self.state.names[name] = before[name]
        made = self.made(node)
        own = {id(n) for n in ast.walk(node)}  # each round makes another of these
        same = (frozenset(r for r in refs if node_of(root(r.region)) not in own) for refs in rounds)
        self.state.put(made, ELEMENTS, NO_REFS.union(*rounds, twice(same)))
        return made

    def one_by_one(self, value: ast.expr, count: int) -> list[tuple[str, Refs]] | None:
        """Return the names and values that so many targets get one by one, where that is seen:
        what is written out, or made of it by a comprehension or by ``map``."""
        if isinstance(value, (ast.Tuple, ast.List)):
            plain = len(value.elts) == count and not any(map(_is_starred, value.elts))
            return [(ast.unparse(v), self.value(v)) for v in value.elts] if plain else None
        over, target, made = _mapped(self.scene, value)
        given = self.one_by_one(over, count) if over is not None else None
        if given is None and over is not None and self._divides(over):
            refs = self.value(over)
            if refs and all(self._is_new(r, self.divisions) for r in refs):
                given = [(ast.unparse(over), self._part(refs, place)) for place in range(count)]
        if given is None or target is None or made is None:
            return None
        before, found = dict(self.state.names), []
        for lap, (name, refs) in enumerate(given):
            self.state.laps.append(lap)
            self.bind(target, refs)
            found.append((name, self.value(made)))
            self.state.laps.pop()
        for name in all_names(target):
            self.state.names.pop(name, None)
            if name in before:
                self.state.names[name] = before[name]
        return found

    def _divides(self, node: ast.expr) -> bool:
        """Return whether an expression may be the parts of a tensor, and can be asked twice."""
        if isinstance(node, ast.Call):
            return last_name(node.func) in DIVIDING
        return isinstance(node, ast.Name)

    _ListComp = _SetComp = _DictComp = _comprehension

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Refs:
        """Evaluate the iterable now; the elements are computed when they are read."""
        refs = self._comprehension(node)
        first = node.generators[0].iter
        if isinstance(first, ast.Name):
            self.state.put(refs, ELEMENTS, made_as(self.value(first), VIEW))
        return refs

    def each(self, node: ast.expr) -> Refs:
        """Return what a loop over an expression binds its target to."""
        return self._rows(node, self.value(node))

    def rows_of(self, call: ast.Call, args: list[Refs]) -> list[Refs]:
        """Return what iteration over each argument of a call yields."""
        nodes = [*call.args, *(k.value for k in call.keywords)]
        if len(nodes) != len(args):
            return [self.contents(refs) for refs in args]
        return [self._rows(node, refs) for node, refs in zip(nodes, args, strict=True)]

    def _rows(self, node: ast.expr, refs: Refs) -> Refs:
        if self._tensor(node):
            return made_as(refs, VIEW)
        unknown = isinstance(node, ast.Starred) or self._maybe_tensor(node)
        return self.contents(refs) if unknown else self.elements(refs)

    def _Yield(self, node: ast.Yield) -> Refs:
        return self._yielded(self.value(node.value)) if node.value is not None else NO_REFS

    def _YieldFrom(self, node: ast.YieldFrom) -> Refs:
        return self._yielded(self.contents(self.value(node.value)))

    def _yielded(self, refs: Refs) -> Refs:
        """Yield an element to the caller, who may keep it while the generator continues."""
        self.state.put(frozenset((Ref(("escaped",)),)), ELEMENTS, refs)
        self.found.returned |= made_as(self.state.reach(refs), VIEW)
        self.found.places = None
        return NO_REFS

    def _part(self, refs: Refs, index: int) -> Refs:
        raise NotImplementedError  # in alias_writes

    def bind(self, target: ast.expr, refs: Refs) -> None:
        raise NotImplementedError  # in alias_writes


def _goes_over(around: ast.AST, node: ast.AST) -> bool:
    """Return whether a comprehension, or ``map``, goes over a node, or is itself given on."""
    if isinstance(around, ast.comprehension):
        return around.iter is node
    if isinstance(around, ast.Call) and getattr(around.func, "id", "") == "map":
        return around.args[1:] == [node]
    return isinstance(around, (ast.ListComp, ast.GeneratorExp))


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _mapped(
    scene: Scene, value: ast.expr
) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    """Return what is gone through, what each item is bound to, and what is made of it:
    ``(f(t) for t in (q, k))``, ``map(lambda t: f(t), (q, k))``."""
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        first, *more = value.generators
        if not more and not first.ifs and not first.is_async:
            return first.iter, first.target, value.elt
    if isinstance(value, ast.Call) and len(value.args) == 2 and not value.keywords:
        called, over = value.args
        is_map = getattr(value.func, "id", "") == "map" and isinstance(called, ast.Lambda)
        builtin = is_map and any(a.kind == "builtin" for a in scene.kind(value.func))
        if builtin and isinstance(called, ast.Lambda) and len(called.args.args) == 1:
            return over, ast.Name(called.args.args[0].arg, ast.Store()), called.body
    return None, None, None
