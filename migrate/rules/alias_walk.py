"""Find the writes of a function after which a stale alias of the tensor is read.

The lattice of shared storage (`analysis.storage`) is solved on the control flow graph of the
function, and the summaries of functions over the cycles of their calls: `docs/inplace.md` argues
why this is sound.
"""

from __future__ import annotations

import ast
from functools import cached_property

from migrate.analysis.cfg import Graph, Node, Role
from migrate.analysis.dataflow import Forward, NoFixpoint, solve
from migrate.analysis.program import File, Function, method_of
from migrate.analysis.storage import (
    COMPUTED,
    ELEMENTS,
    MAYBE,
    NO_REFS,
    REST,
    VIEW,
    Intricate,
    Ref,
    Refs,
    Region,
    State,
    joined,
    made_as,
    one_more_walk,
    regions,
    root,
)
from migrate.analysis.types.kinds import ARRAY, is_all
from migrate.analysis.types.named import computed_names
from migrate.rules.alias_calls import Calls
from migrate.rules.alias_findings import Back, Findings, Notes, Path, Resting, Summary, kept_by
from migrate.rules.alias_values import GATHERING
from migrate.rules.called_from import in_forward, is_for_effect, operators, scene_of
from migrate.rules.data_attribute import moves_weight
from migrate.rules.views import bound, named
from migrate.rules.written import (
    adds_elements,
    is_element,
    is_shared_array,
    may_be_tensor,
    target_of,
    unsure_item,
    unsure_target,
)
from migrate.sites.buffer_gradients import is_buffer, is_data, registered
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_names, all_parameters

# no names of Python's: what the match around asks, and what is returned before ``finally`` runs
_SUBJECT, _RESULT = "<subject>", "<result>"
_GIVEN_UP = (Intricate, NoFixpoint, RecursionError)  # of a file with an error nothing is written
MOST_ROUNDS = 20  # of a cycle of calls; then its functions are too intricate


def _notes(scene: Scene) -> Notes:
    notes = scene.inference.program.notes.setdefault("aliases", Notes())
    assert isinstance(notes, Notes)
    return notes


def findings(scene: Scene, function: Function | None) -> Findings:
    """Return what is found in a function, or in the module's own statements."""
    key = id(function) if function is not None else scene.file.path
    notes = _notes(scene)
    return notes.done[key] if key in notes.done else _solved(scene, function, key, notes)


def _solved(scene: Scene, function: Function | None, key: int | str, notes: Notes) -> Findings:
    """Solve a function; again while its own summary, which it used, is not what came out.

    In a cycle it is asked for at every call and in every round of those that wait for it: what it
    rests on tells whether it has to be solved once more.
    """
    if key in notes.resting and notes.resting[key].holds(notes.open):
        resting = notes.resting[key]
        notes.asked |= resting.on.keys()
        notes.walked |= resting.walked
        return resting.found
    outer, around, used = notes.asked, notes.walked, set[int | str]()
    notes.open[key], notes.walked = Summary(), {key}
    for _ in range(MOST_ROUNDS):
        notes.asked = set()
        try:
            found = _Walk(scene, function, notes.steps[key]).all()
        except _GIVEN_UP:
            found = Findings(intricate=True)
        made = _summarised(scene, function, found) if function is not None else Summary()
        used |= notes.asked
        if found.intricate or key not in notes.asked or made == notes.open[key]:
            break
        notes.open[key] = made
    else:
        found = Findings(intricate=True)
    del notes.open[key]
    within = notes.asked - {key}
    notes.asked = outer | within
    finished = found.intricate or not within & notes.open.keys()
    if finished:  # else it is solved again with the one that waits for it
        notes.done[key] = found
        notes.resting.pop(key, None)
    else:
        on = {one: notes.open[one] for one in used if one in notes.open}
        notes.resting[key] = Resting(found, on, frozenset(notes.walked))
    notes.walked |= around
    return found


def findings_entered(scene: Scene, function: Function, loops: frozenset[int]) -> Findings:
    """Return what is found in a function if some of its loops, by id, go round once at least.

    What callers know of the function does not rest on that.
    """
    notes, key = _notes(scene), (id(function), loops)
    if key not in notes.entered:
        try:
            steps = notes.steps[f"entered {id(function)}"]
            notes.entered[key] = _Walk(scene, function, steps).all(loops)
        except _GIVEN_UP:
            notes.entered[key] = Findings(intricate=True)
    return notes.entered[key]


def solved(scene: Scene) -> list[Findings]:
    """Return what is found in those units of a file that were solved."""
    keys = (scene.file.path, *map(id, scene.file.functions.values()))
    done = _notes(scene).done
    return [done[key] for key in keys if key in done]


def summary(scene: Scene, function: Function) -> Summary:
    """Return what callers of a function must know."""
    notes = _notes(scene)
    if id(function) in notes.open:
        notes.asked.add(id(function))
        return notes.open[id(function)]
    there = scene_of(scene, scene.inference.program.files[function.path])
    return _summarised(there, function, findings(there, function))


def _summarised(scene: Scene, function: Function, found: Findings) -> Summary:
    own = owner_parameter(function)
    if found.intricate:  # its writes are flagged, each of them
        names = (p.arg for p in all_parameters(function.node.args))
        return Summary(Back(dict.fromkeys(names, MAYBE)))
    writes: dict[str, int] = {}
    for given in found.given.values():
        for name, how in given.items():
            if name != own:
                writes[name] = max(how, writes.get(name, 0))
    return Summary(
        _given_back(found, found.returned, own),
        tuple(_given_back(found, refs, own) for refs in found.places or ()),
        writes,
        found.tied,
        changes_object(scene, function),
        frozenset(found.lost),
        frozenset(found.rebound),
        frozenset(found.added_to),
        frozenset(p for p in found.asked if p[-1] in (REST, COMPUTED, *registered(scene))),
        frozenset(found.items),
        frozenset(found.kept),
        frozenset(found.changed),
        frozenset(found.outside),
        frozenset(found.behind),
        *(bool(found.whole), found.divided),
        sets=frozenset(writes)
        - {n for by in found.given.keys() & found.otherwise for n in found.given[by]},
    )


def _given_back(found: Findings, returned: Refs, own: str) -> Back:
    """Return what the storages in the result of a function are to its callers."""
    shares: dict[str, int] = {}
    fields: dict[Path, int] = {}
    outer: dict[str, int] = {}
    added = False
    for ref in returned:
        top = root(ref.region)
        place = top[1] if len(top) > 1 else 0
        added |= place in found.added
        path = found.sums.get(place, ())
        if len(path) > 1 and path[0] == own:  # what the attribute holds from here on
            fields[path[1:2]] = min(max(ref.how, VIEW), fields.get(path[1:2], MAYBE))
        for name, how in found.given.get(place, {}).items():  # type: ignore[call-overload]
            shares[name] = min(how, shares.get(name, MAYBE))
        if top[0] == "outer":
            how = ref.how if ref.region == top else max(ref.how, VIEW)
            outer[str(place)] = min(how, outer.get(str(place), MAYBE))
        if ref.region == ("param", own):
            shares[own] = min(ref.how, shares.get(own, MAYBE))
        elif top == ("param", own):
            if ref.how < MAYBE:  # an unknown layer is taken to hand on no member
                fields[_fields(ref.region)] = VIEW
        elif top[0] == "param":
            name, how = str(top[1]), ref.how if ref.region == top else max(ref.how, VIEW)
            shares[name] = min(how, shares.get(name, MAYBE))
    return Back(shares, fields, outer, added)


def _fields(region: Region) -> Path:
    """Return the attributes that lead from ``self`` to a region, or to what it is an item of."""
    names: list[str] = []
    while region[0] in ("field", "item"):
        names = [str(region[2]), *names] if region[0] == "field" else []
        region = region[1]  # type: ignore[assignment]
    return tuple(names)


def owner_parameter(function: Function) -> str:
    """``self``, or what a method calls it."""
    if function.owner is None or function.decorated("staticmethod") or not function.parameters:
        return ""
    return function.parameters[0].arg


def _of_scripts(file: File) -> set[int]:
    """Return the nodes under ``if __name__ == "__main__"``.

    Where they run, nobody imports the file, and nothing runs behind its end.
    """
    tops = (i for i in file.source.tree.body if isinstance(i, ast.If))
    mains = (i for i in tops if ast.unparse(i.test) == "__name__ == '__main__'")
    return {id(n) for i in mains for s in i.body for n in ast.walk(s)}


def changes_object(scene: Scene, function: Function) -> bool:
    """A function that is called for what it does to its arguments, and never by a forward.

    Its variable is not bound anew: the very object of the caller gets the new value.
    """
    if isinstance(function.node, ast.Lambda):
        return False
    returns = (n for n in function.of(ast.Return) if isinstance(n, ast.Return))
    gives = any(n.value is not None for n in returns) or bool(function.of(ast.Yield))
    for_effect = not gives or is_for_effect(scene, function)
    return for_effect and (not gives or not in_forward(scene, function))


class _Walk(Calls, Forward[State]):
    """The transfer function of the lattice, for one function."""

    def __init__(
        self, scene: Scene, function: Function | None, steps: list[int] | None = None
    ) -> None:
        super().__init__(scene, lambda f: summary(scene, f))
        self.function = function
        self.steps = [0] if steps is None else steps  # those of earlier walks count
        self._rounds: dict[int, frozenset[int]] = {}
        owner = function.owner if function is not None else None
        bases = scene.inference.torch_bases(owner.key) if owner is not None else ()
        self.apart = "torch2ms.OptimizerWithStep" in bases

    def all(self, entered: frozenset[int] = frozenset()) -> Findings:
        one_more_walk(self.steps)
        unit = self.function.node if self.function is not None else self.scene.source.tree
        solve(self, self.graph(unit, self.function, entered))
        return self.found

    def _unit(self) -> ast.AST | None:
        return self.function.node if self.function is not None else None

    def _own(self) -> Refs:
        method = method_of(self.function)
        return self.look(owner_parameter(method)) if method is not None else NO_REFS

    def initial(self, graph: Graph) -> State:
        state = State(steps=self.steps, same=computed_names(self.scene.inference.program))
        for parameter in all_parameters(self.function.node.args) if self.function else ():
            state.names[parameter.arg] = frozenset((Ref(("param", parameter.arg)),))
        state.get(frozenset(map(Ref, self._gathering())), ELEMENTS)  # no tensors, which have views
        return state

    def _gathering(self) -> frozenset[Region]:
        """Return the parameters that gather arguments: ``*args`` and ``**options``."""
        arguments = self.function.node.args if self.function is not None else None
        rest = (arguments.vararg, arguments.kwarg) if arguments is not None else ()
        return frozenset(("param", a.arg) for a in rest if a is not None)

    def _runs(self, item: ast.withitem) -> bool:
        """Return whether methods of the program are run where a ``with`` is entered or left."""
        return id(item) in operators(self.scene.inference)

    def join(self, first: State, second: State) -> State:
        return joined((first, second)) or first

    def transfer(self, node: Node, before: State) -> State:
        left = [i for i in getattr(node.statement, "items", ()) if self._runs(i)]
        if node.role is Role.ENTRY or (node.role is Role.LEAVE and not left):
            return before
        self.state = before.copy()
        self.flight.clear()
        self.waiting = []
        part = node.part
        if node.role is Role.EXIT:
            self._leave()
        elif node.role is Role.LEAVE:
            for item in left:
                self.operated(item, "__exit__")
        elif node.role is Role.ITERATE:
            assert isinstance(part, ast.expr)
            self.value(part)
        elif node.role is Role.BIND:
            assert isinstance(part, ast.expr)
            assert isinstance(node.statement, (ast.For, ast.AsyncFor))
            self.state.next_round(self._made_in(node.statement))
            gone = self.operated(node.statement) or NO_REFS
            self.bind(part, self.each(node.statement.iter) | gone)
        elif node.role is Role.ENTER:
            assert isinstance(part, ast.withitem)
            refs = self.value(part.context_expr)
            entered = self.operated(part, "__enter__")
            refs = refs if entered is None else entered
            if part.optional_vars is not None:
                self.bind(part.optional_vars, refs)
        elif node.role is Role.SUBJECT:
            assert isinstance(part, ast.expr)
            self.state.names[_SUBJECT] = self.value(part)
        elif node.role is Role.CASE:
            assert part is not None
            self._case(part, self.state.names.get(_SUBJECT, frozenset()))
        elif node.role is Role.DEFINITION:
            assert isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            self.state.names[part.name] = self.closure(part)
        elif isinstance(part, ast.expr):
            if node.role is Role.TEST and isinstance(node.statement, ast.While):
                self.state.next_round(self._made_in(node.statement))
            refs = self.value(part)
            if self.function is not None and isinstance(self.function.node, ast.Lambda):
                self.found.returned |= self.state.reach(refs)
        elif isinstance(part, ast.stmt):
            method = getattr(self, "_" + type(part).__name__, None)
            (method or self._parts)(part)
        if part is not None:
            self._views(part, node.role)
        return self.state

    def _made_in(self, loop: ast.For | ast.AsyncFor | ast.While) -> frozenset[int]:
        """Return the syntax nodes of which each round of a loop makes something anew."""
        if id(loop) not in self._rounds:
            self._rounds[id(loop)] = frozenset(id(n) for s in loop.body for n in ast.walk(s))
        return self._rounds[id(loop)]

    def _views(self, part: ast.AST, role: Role) -> None:
        """Note the names that surely hold a view of another name from here on."""
        if isinstance(part, ast.AugAssign) and is_all(self.scene.kind(part), "Tensor"):
            return  # the same tensor, changed
        if self.state.views:
            for name in bound(part):
                self.state.bound(name)
        if isinstance(part, (ast.Assign, ast.AnnAssign)) and role is Role.STATEMENT:
            shared = self.shared
            for name, view in named(self.scene, part).items():
                read = all_names(view)
                if shared.isdisjoint(read | {name}):
                    self.state.views[name] = view

    @cached_property
    def shared(self) -> frozenset[str]:
        """Names that functions may bind in a scope around them."""
        declared = [one.names for one in self.scene.file.of(ast.Global)]
        declared += [one.names for one in self.scene.file.of(ast.Nonlocal)]
        return frozenset(name for names in declared for name in names)

    def _case(self, pattern: ast.AST, refs: Refs) -> None:
        for part in ast.walk(pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                self.state.names[name] = refs | self.elements(refs)

    def _leave(self) -> None:
        """Read what outlives the function: its holders read it; importers read a module's names."""
        own = self._gathering()
        self.read("what is returned", self.state.names.get(_RESULT, NO_REFS))
        self.read("what holds it after the function", self.state.escaping(own))
        for region, names in self.closures.items():  # what lives on with a function made here
            held = (self.state.names.get(name, NO_REFS) for name in names)
            self.state.put(frozenset((Ref(region),)), ELEMENTS, NO_REFS.union(*held))
        self.found.kept |= kept_by(self.state, own)
        if self.function is None:
            known = {*self.found.seen}
            for name, refs in self.state.names.items():
                self.read(f"{name} of the module", refs)
            for key in (self.found.seen.keys() - known) & _of_scripts(self.scene.file):
                del self.found.seen[key]

    # -- assignments ----------------------------------------------------------------------------

    def _Assign(self, item: ast.Assign) -> None:
        one, value = item.targets[0], item.value
        if len(item.targets) == 1 and isinstance(one, ast.Tuple):
            starred = any(isinstance(e, ast.Starred) for e in one.elts)
            values = None if starred else self.one_by_one(value, len(one.elts))
            for index, target in enumerate(one.elts if values else ()):
                assert values is not None
                self.waiting = values[index + 1 :]  # views of what is written here
                self._store(target, values[index][1])
            if values:
                return
        refs = self.value(value)
        for target in item.targets:
            whole = isinstance(target, (ast.Tuple, ast.List)) and self._tensor(value)
            self._store(target, made_as(refs, VIEW) if whole else refs)

    def _AnnAssign(self, item: ast.AnnAssign) -> None:
        if item.value is not None:
            self._store(item.target, self.value(item.value))

    def _store(self, target: ast.expr, refs: Refs) -> None:
        if isinstance(target, ast.Subscript) and "Tensor" in self.scene.kind_names(target.value):
            self._set_item(target, target)
            self.bind(target, refs)  # where it is a container after all
        elif isinstance(target, ast.Subscript) and is_shared_array(self.scene, target.value):
            self.set_array(target, target.value)
        elif isinstance(target, ast.Subscript) and self.scene.kind(target.value) == ARRAY:
            return  # an array copies what it is given
        elif isinstance(target, ast.Attribute) and is_data(self.scene, target):
            if isinstance(target.value, (ast.Name, ast.Attribute)):
                self._leave_views(target)
                self.bind(target.value, refs)
        elif isinstance(target, (ast.Tuple, ast.List)) or self._is_bound(target):
            if unsure_item(self.scene, target):
                self._may_set(target, target)
            self.bind(target, refs)

    def _is_bound(self, target: ast.expr) -> bool:
        """Return whether a store binds its target, beside what it runs: ``__setattr__`` as a rule
        hands most of the names on."""
        return self.operated(target) is None or self._sets_itself(target)

    def _sets_itself(self, target: ast.expr) -> bool:
        """Return whether the object may be of a class with a ``__setattr__`` of its own."""
        ran = operators(self.scene.inference).get(id(target), ())
        return any(function.name == "__setattr__" for *_, function in ran)

    def _leave_views(self, target: ast.Attribute) -> None:
        """``p.data = v`` gives p other memory; here v is written to the old, which views keep."""
        left = regions(self.holders(target.value))
        own = frozenset(Ref(region) for region in left)
        self.state.write(own, id(target), assigned=True)

    def _set_item(self, by: ast.AST, place: ast.Subscript) -> None:
        """``y[i] = v`` changes ``y``."""
        mark = len(self.flight)
        target = target_of(self.scene, place)
        refs = self.target_refs(target)
        self.value(place.slice)
        del self.flight[mark:]
        self.flight[:] = self.waiting
        self.write(by, place, self.with_linked(refs), "item")

    def _may_set(self, by: ast.AST, place: ast.expr) -> None:
        """``y[i] = v`` of what may be a list, a dict or a tensor: the name holds either."""
        assert isinstance(place, ast.Subscript)
        refs = self.holders(place.value)
        self.state.unsure.add(id(by))
        self.flight[:] = self.waiting
        self.write(by, place, refs, "item")
        if isinstance(place.value, ast.Name):
            held = self.state.names.get(place.value.id, NO_REFS)
            self.state.names[place.value.id] = held | refs

    def value(self, node: ast.expr) -> Refs:
        found = self.operated(node)
        return super().value(node) if found is None else found

    def operated(self, node: ast.AST, *only: str) -> Refs | None:
        """Return what methods of the program give that a node runs; None: it runs none."""
        found: Refs | None = None
        for _, call, function in operators(self.scene.inference).get(id(node), ()):
            if only and function.name not in only:
                continue
            assert isinstance(call.func, ast.Attribute)
            mark = len(self.flight)
            receiver = self.holders(call.func.value)
            args = [self.value(a) for a in call.args]
            del self.flight[mark:]  # they are passed, and not read again
            self._asked, self._one, self._alone = None, NO_REFS, False
            asks = function.name == "__getattr__" and isinstance(node, ast.Attribute)
            made = self.state.get(receiver, node.attr) if asks else NO_REFS  # type: ignore[attr-defined]
            if not asks or function.node is not self._unit():  # there the object has it itself
                made |= self._project(function, call, receiver, args, {}, True)
            found = made if found is None else found | made
        return found

    def _AugAssign(self, item: ast.AugAssign) -> None:
        target, made = item.target, self.operated(item)
        if made is not None:
            self.bind(target, made)
            return
        if isinstance(target, ast.Attribute):
            self.operated(target)
            if self._sets_itself(target):  # where it keeps the sum is not followed
                self.found.seen.setdefault(id(item), f"what __setattr__ keeps of {target.attr}")
        added = self.value(item.value)
        array = target.value if isinstance(target, ast.Subscript) else target
        if is_shared_array(self.scene, array):
            self.set_array(item, array)
            return
        if isinstance(target, ast.Subscript) and "Tensor" in self.scene.kind_names(target.value):
            self._set_item(item, target)
            return
        refs = self.target_refs(target_of(self.scene, target))
        kinds = self.scene.kind_names(target)
        if "Tensor" not in kinds and not is_all(self.scene.kind(item), "Tensor"):
            if GATHERING & kinds or may_be_tensor(kinds):
                self.state.put(refs, ELEMENTS, self.elements(added))
            if adds_elements(self.scene, item):
                return
            if unsure_item(self.scene, target):
                self._may_set(item, target)
            elif may_be_tensor(kinds) and (
                unsure_target(self.scene, target) or is_element(self.scene, target)
            ):
                self._may_add(item, target, refs)
            elif may_be_tensor(kinds) and isinstance(target, ast.Attribute):
                self.state.unsure.add(id(item))
                self.add_to_attribute(item, target, refs, refs)
            return
        self.flight.clear()
        if isinstance(target, ast.Attribute) and is_buffer(self.scene, target):
            self.found.assigned.add(id(item))
            self.state.write(refs, id(item), assigned=True)
            self.lose(id(item), item, refs, [item.value])
            return
        bare = isinstance(target, ast.Attribute) and not is_data(self.scene, target)
        if isinstance(target, ast.Attribute) and bare and not moves_weight(self.scene, item):
            self.add_to_attribute(item, target, refs, NO_REFS)
            return
        self.found.added.add(id(item))
        self.write(item, target, refs, "bound")

    def _may_add(self, item: ast.AugAssign, target: ast.expr, refs: Refs) -> None:
        """``x += y`` of what may be a number, a list or a tensor: the name holds either."""
        self.state.unsure.add(id(item))
        self.write(item, target, refs, "bound")
        if isinstance(target, ast.Name):
            self.state.names[target.id] = self.state.names.get(target.id, NO_REFS) | refs

    def _Return(self, item: ast.Return) -> None:
        if item.value is None:
            return
        if not isinstance(item.value, (ast.Tuple, ast.List)):
            refs = self.value(item.value)
            self.state.names[_RESULT] = refs
            self.found.returned |= self._given(refs)
            self.note_returned(item.value, refs)
            self._returns([])
            return
        each = [self.value(e) for e in item.value.elts]  # once: one of them may write
        self.state.names[_RESULT] = NO_REFS.union(*each)
        self.found.returned |= self._given(self.displayed(item.value, each))
        single = [not isinstance(e, ast.Starred) for e in item.value.elts]
        parts = [self.state.reach(r) for r, alone in zip(each, single, strict=True) if alone]
        regions = [{r.region for r in part} for part in parts]
        self.found.tied |= sum(map(len, regions)) != len(set().union(*regions))
        self._returns(parts if all(single) else [])

    def _given(self, refs: Refs) -> Refs:
        """Return the result of a function: for ``self`` the object, whose members the caller
        follows.
        """
        reached = self.state.reach(refs)
        inner = {n for r in reached for n in self.closures.get(r.region, ())}  # it reads these
        held = (self.state.names.get(name, NO_REFS) for name in inner)
        reached |= made_as(self.state.reach(NO_REFS.union(*held)), MAYBE)
        own = ("param", owner_parameter(self.function) if self.function is not None else "")
        if regions(refs) != {own}:
            return reached
        sums = self.found.sums
        return frozenset(
            r
            for r in reached
            if r.region == own or (root(r.region) != own and root(r.region)[1] not in sums)
        )

    def _returns(self, parts: list[Refs]) -> None:
        """Note what each place of a returned tuple holds; nothing where lengths differ."""
        known = self.found.places
        if not parts or known is None or len(known or parts) != len(parts):
            self.found.places = None
        else:
            before = known or (NO_REFS,) * len(parts)
            self.found.places = tuple(b | p for b, p in zip(before, parts, strict=True))

    def _Import(self, item: ast.Import | ast.ImportFrom) -> None:
        return

    _ImportFrom = _Import

    def _Delete(self, item: ast.Delete) -> None:
        for target in item.targets:
            if isinstance(target, ast.Name):
                self.state.names.pop(target.id, None)
