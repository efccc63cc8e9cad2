"""In: a target and a value, or a tensor that is changed. Out: what the names hold after that."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterable, Mapping

from migrate.analysis.cfg import Node
from migrate.analysis.facts import UnitFacts
from migrate.analysis.program import Function
from migrate.analysis.storage import (
    ELEMENTS,
    MAYBE,
    NO_REFS,
    REST,
    SAME,
    VIEW,
    Ref,
    Refs,
    Region,
    is_held,
    lender,
    made_as,
    node_of,
    outer_path,
    path_of,
    regions,
    root,
)  # fmt: skip
from migrate.analysis.types.kinds import is_all
from migrate.rules.alias_findings import MADE, Path, Summary
from migrate.rules.alias_values import Values
from migrate.rules.data_attribute import compiled
from migrate.rules.stopped import is_stopped
from migrate.rules.views import Repair, base_of, is_statement
from migrate.rules.written import Holder, Target, clips_each, entry_of, leading, target_of
from migrate.sites.buffer_gradients import carries, is_buffer, is_data, parameters, registered
from migrate.sites.module_members import family
from migrate.sites.scene import Scene
from migrate.syntax.trees import FUNCTIONS, all_parameters


class Writes(Values):
    """Binds names, and changes tensors.

    ``apart``: in an optimizer no gradient is recorded; there a tensor that some object may hold
    (``state["mean"]``, made here in the first round) is changed itself as well.
    """

    apart = False

    # -- binding and writing --------------------------------------------------------------------

    def bind(self, target: ast.expr, refs: Refs) -> None:
        if isinstance(target, ast.Name):
            self.state.names[target.id] = refs
        elif isinstance(target, (ast.Tuple, ast.List)):
            spread = any(isinstance(part, ast.Starred) for part in target.elts)
            # behind a star the length decides which one it is
            some = self.elements(refs) | made_as(refs, VIEW) if spread else NO_REFS
            for index, part in enumerate(target.elts):
                part = part.value if isinstance(part, ast.Starred) else part
                self.bind(part, some if spread else self._part(refs, index))
        elif isinstance(target, ast.Attribute):
            holders = self.holders(target.value)
            if is_buffer(self.scene, target):
                refs = self._buffer(target, holders, refs)
            self.state.put(holders, target.attr, refs, anew=True)
        elif isinstance(target, ast.Subscript) and not self._tensor(target.value):
            self.value(target.slice)
            key = entry_of(target)
            self.state.put(self.holders(target.value), key or ELEMENTS, refs, anew=bool(key))

    def _buffer(self, target: ast.Attribute, holders: Refs, refs: Refs) -> Refs:
        """A buffer takes the numbers of what is assigned to it, for all who hold the buffer.

        In torch the others keep the old tensor, and the buffer is the very tensor assigned.
        """
        own = self.rebind(id(target), self.state.get(holders, target.attr))
        for ref in own:
            self.state.cut.pop(ref.region, None)
        item = self.scene.parent(target)
        if isinstance(item, ast.Assign):
            self.lose(id(target), item, own, [item.value])
        return own | made_as(refs, VIEW)

    def rebind(self, by: int, old: Refs) -> Refs:
        """Mark who holds what an attribute held before; what the attribute itself holds now."""
        for ref in old:
            if len(path := path_of(ref.region)) > 1:
                self.found.rebound.setdefault(path, set()).add(by)
        self.state.write(old, by)
        return frozenset(Ref(ref.region) for ref in old if ref.region[0] == "field")

    def add_to(self, by: int, at: ast.AST, held: Mapping[Hashable, Refs]) -> dict[Hashable, Refs]:
        """Mark who holds what attributes held before they were bound to sums; return the sums.

        ``held`` has what each held by the place of its sum: all change at once.
        """
        held = {place: frozenset(r for r in refs if r.how < MAYBE) for place, refs in held.items()}
        for place, refs in held.items():
            for ref in refs:
                if len(path := path_of(ref.region)) > 1:
                    self.found.added_to.setdefault(path, set()).add(by)
                    self.found.sums[place] = path
        old = NO_REFS.union(*held.values())
        self.note_given(at, frozenset(r for r in old if r.region[0] == "param"))
        self.state.write(old, by)
        return {place: frozenset((self.state.make(place),)) for place in held}

    def add_to_attribute(
        self, item: ast.AugAssign, target: ast.Attribute, refs: Refs, kept: Refs
    ) -> None:
        """``self.x += y`` binds the attribute to a sum; ``kept`` is what it may hold as before."""
        bound = bool(refs) and not any(is_held(r.region) for r in refs)
        if not bound and self._is_of_class(target):
            self.found.seen.setdefault(id(item), f"{target.attr} of the class")
        new = self.add_to(id(item), item, {id(item): refs})[id(item)] | kept
        self.state.put(self.holders(target.value), target.attr, new, anew=True)

    def _is_of_class(self, node: ast.Attribute) -> bool:
        """Return whether an attribute of an object may be that of its class, which all share."""
        for atom in self.scene.kind(node.value):
            owner = self.scene.inference.class_of(atom.name) if "::" in atom.name else None
            for one in family(self.scene, owner.key) if owner is not None else ():
                built = one.methods.get("__init__")
                if built is not None and built in one.stores.get(node.attr, ()):
                    return False
                for item in one.node.body:
                    targets = item.targets if isinstance(item, ast.Assign) else ()
                    if any(getattr(t, "id", "") == node.attr for t in targets):
                        return True
        return False

    def change(self, by: int, refs: Refs) -> None:
        """Note that very tensors change, which objects hold: views of them go stale."""
        self._note_changed(by, refs)
        self.state.write(refs, by, assigned=True)

    def _note_changed(self, by: int, refs: Refs) -> None:
        for path in {outer_path(r.region) for r in refs if r.how < MAYBE}:
            if path:
                self.found.outside.setdefault(path, set()).add(by)
        paths = {path_of(r.region) for r in refs if r.how == SAME}
        if self.apart and any("[" in name for path in paths for name in path):
            return  # weights and their state, which every step moves
        for path in (p for p in paths if len(p) > 1):
            self.found.changed.setdefault(path, set()).add(by)

    def lose(self, by: int, at: ast.AST, refs: Refs, values: Iterable[ast.expr]) -> None:
        """Note what takes a value whose gradient does not come along."""
        if is_stopped(self.scene, self.scene.file, at):
            return
        function = self.scene.function(at)
        inside = function.node if function is not None else self.scene.source.tree
        if any(carries(self.scene, value, inside, frozenset()) for value in values):
            self.lost(by, refs)

    def lost(self, by: int, refs: Refs) -> None:
        for ref in refs:
            if ref.region[0] == "field" and ref.how < MAYBE:
                self.state.cut[ref.region] = frozenset((by,))
                if path := path_of(ref.region):
                    self.found.lost.setdefault(path, set()).add(by)

    def _part(self, refs: Refs, index: int) -> Refs:
        """One of the values that an unpacking gives."""
        found: set[Ref] = set()
        for ref in refs:
            alone = frozenset((ref,))
            if (ref.region, f"#{index}") in self.state.inside:
                found |= self.state.inside[(ref.region, f"#{index}")]
            elif (ref.region, ELEMENTS) in self.state.inside or is_held(ref.region):
                found |= self.state.get(alone, ELEMENTS)
            elif ref.how or ref.region[0] != "new":
                found |= made_as(alone, VIEW)
            else:
                found.add(Ref(("item", ref.region, index)))
        return frozenset(found)

    def write(self, by: ast.AST, expr: ast.expr, refs: Refs, mode: str) -> Refs:
        """The tensor ``expr`` changes; ``mode`` says what becomes of the name it has.

        "bound": it is bound anew; "again": the statement can bind it anew; "": it keeps the old.
        """
        target, key = target_of(self.scene, expr), id(by)
        self.found.repairs.pop(key, None)
        self.note_given(by, refs, mode == "item")
        if mode == "item" or target.holder is Holder.ITEM or isinstance(expr, ast.Subscript):
            self.set_items(refs)
        tops = (root(r.region) for r in refs)
        if any(top[0] in ("new", "old") and node_of(top) in self.divisions for top in tops):
            self.found.unfolded.add(key)  # a graph adds into the parts of a tensor, or fails
        hit = regions(refs)
        for name, seen in self.flight:
            if hit & regions(self.state.reach(seen)):
                self.found.seen.setdefault(key, name)
        known = [r for r in refs if r.how < MAYBE]
        same = bool(known) and not any(r.how for r in refs)
        held = same and all(self.state.is_object(r.region) for r in refs)
        held = held or (same and self.apart and any(is_held(r.region) for r in refs))
        placed = target.holder in (Holder.OUTER, Holder.PLACE)
        collected = target.holder is Holder.ELEMENT and self._keeps_no_gradient(by, refs)
        if _changes_object(by, expr) and (placed or collected or (held and mode != "item")):
            self.found.assigned.add(key)
            self.change(key, frozenset(known))
            self._taken(by, expr, refs)
            if isinstance(target.expr, ast.Attribute):  # it shares what it shared
                holders = self.holders(target.expr.value)
                inside = self.state.get(holders, target.expr.attr)
                fresh = frozenset(r._replace(stale=0) if r.stale == key else r for r in inside)
                self.state.put(holders, target.expr.attr, fresh, anew=True)
            return refs
        if mode == "item":
            self._note_changed(key, frozenset(known))
        if target.holder is Holder.PLACE:
            self._taken(by, expr, refs)
        part = VIEW if mode == "item" else SAME  # an item is set in the very object
        if any(part <= r.how < MAYBE and root(r.region)[0] == "outer" for r in refs):
            self.found.seen.setdefault(key, "a variable of outside, or one that it is a part of")
        self._unseen(key, expr, refs)
        repairs = self._repairs(by, target, refs) if mode in ("bound", "item") else ()
        self.state.write(refs, key)
        new = self.state.make(key)
        for one in repairs:
            self._repaired(one, new)
        if target.holder is Holder.ELEMENT and mode:
            assert isinstance(target.expr, ast.Subscript)
            for ref in refs:
                if ref.how < MAYBE and len(path := path_of(ref.region)) > 2:
                    self.found.added_to.setdefault(path, set()).add(key)
            name = entry_of(target.expr) or ELEMENTS
            each = clips_each(self.scene, by)
            self.renew_elements(self.holders(target.expr.value), key, frozenset((new,)), name, each)
        elif mode and target.name in self.state.names:  # also a number: a sum that starts as 0
            again = -key if mode == "again" else 0
            how = VIEW if repairs and target.name in self.state.views else SAME
            named = frozenset((new._replace(stale=again, how=how),))
            if target.holder is Holder.ITEM and mode == "bound":  # of a container, perhaps
                before = self.state.names[target.name]
                places = self.state.inside
                holders = frozenset(r for r in before if (r.region, ELEMENTS) in places)
                self.renew_elements(holders, key, named)
                named |= holders
            self.state.names[target.name] = named
        return frozenset((new,))

    def _unseen(self, key: int, expr: ast.expr, refs: Refs) -> None:
        """Note whether torch made the tensor that a write changes, and nothing holds it."""
        func = expr.func if isinstance(expr, ast.Call) else None
        made = func is not None and all(
            a.kind in ("ref", "method") and a.name.startswith("torch.")
            for a in self.scene.kind(func)
        )
        if not made and not (isinstance(expr, ast.BinOp) and self._tensor(expr)):
            return
        alone = all(
            r.region[0] == "new" and r.how == SAME and not self.state.is_known(r) for r in refs
        )
        (self.found.unseen.add if refs and alone else self.found.unseen.discard)(key)

    # -- names of one tensor ----------------------------------------------------------------------

    def _repairs(self, by: ast.AST, target: Target, refs: Refs) -> tuple[Repair, ...]:
        """The names that are brought up to date behind a write; the others go stale."""
        found: tuple[Repair, ...] = ()
        point = self.scene.facts.point(by)
        own = target.holder in (Holder.NAME, Holder.ITEM, Holder.VIEW)
        if own and self.state.views and point is not None and is_statement(self.scene, by):
            found = self._repaired_names(target.name, regions(refs), point)
        if found:
            self.found.repairs[id(by)] = (by, found)
        else:
            self.found.repairs.pop(id(by), None)
        return found

    def _repaired_names(
        self, name: str, hit: frozenset[Region], point: tuple[UnitFacts, Node]
    ) -> tuple[Repair, ...]:
        facts, node = point
        up = self._viewed(name)
        if up is None:
            return ()
        taken: dict[str, ast.expr] = {}
        missed = False
        for other, held in self.state.names.items():
            if other == name or not hit & regions(held) or not facts.live.after(other, node):
                continue
            path = self._viewed(other)
            if path is None or (path or [other])[-1] != (up or [name])[-1]:
                continue
            missed = True
            for one in reversed((other, *path)):
                if one != name and one not in up:
                    taken[one] = self.state.views[one]
        if not missed:
            return ()
        whole = [Repair(one, self.state.views[one], True) for one in (name, *up)[:-1]]
        return (*whole, *(Repair(one, view, False) for one, view in taken.items()))

    def _viewed(self, name: str) -> list[str] | None:
        """The names that a name is a view of, nearest first; None where one is not up to date."""
        path = [name]
        while path[-1] in self.state.views:
            path.append(base_of(self.state.views[path[-1]]))
        for one in path:
            held = self.state.names.get(one, NO_REFS)
            if not held or any(r.stale > 0 or r.how == MAYBE for r in held):
                return None
        return path[1:]

    def _repaired(self, one: Repair, new: Ref) -> None:
        name = base_of(one.view) if one.up else one.name
        how = VIEW if name in self.state.views else SAME
        self.state.names[name] = frozenset((new._replace(how=how),))

    def _taken(self, by: ast.AST, expr: ast.expr, refs: Refs) -> None:
        """A buffer or Parameter takes numbers, whose gradient is lost."""
        held = frozenset(r for r in refs if r.region[0] == "field" and self._is_parameter(r.region))
        if not held or through_data(self.scene, expr):
            return
        if isinstance(by, ast.Call):
            values = [*by.args, *(k.value for k in by.keywords)]
        else:
            item = self.scene.parent(by) if isinstance(by, ast.Subscript) else by
            values = [item.value] if isinstance(item, (ast.Assign, ast.AugAssign)) else []
        self.lose(id(by), by, held, [v for v in values if v is not expr])

    def _is_parameter(self, region: Region) -> bool:
        name = str(region[2])
        return name == REST or name in registered(self.scene) or name in parameters(self.scene)

    def set_items(self, refs: Refs) -> None:
        """Note the augmented assignments to a tensor of which an element is set now."""
        for ref in refs:
            top = root(ref.region)
            if top[0] in ("new", "old") and node_of(top) in self.found.added:
                self.found.unfolded.add(node_of(top))  # type: ignore[arg-type]
            elif top[0] == "param" and ref.how < MAYBE:
                self.found.items.add(str(top[1]))

    def _keeps_no_gradient(self, by: ast.AST, refs: Refs) -> bool:
        """Whether whole tensors that were made here are changed where nothing is differentiated.

        A value can then be put into the very object, whichever of them it is; not in graph mode,
        which changes Parameters only.
        """
        whole = bool(refs) and all(r.how == SAME and r.region[0] in ("new", "old") for r in refs)
        return (
            whole and is_stopped(self.scene, self.scene.file, by) and not compiled(self.scene, by)
        )

    def note_given(self, by: ast.AST, refs: Refs, item: bool = False) -> None:
        """The parameters whose storage a write changes, and whether it may change a part only.

        ``item``: it sets elements, which the very object shows in PyNative.
        """
        if not item or any(ref.how for ref in refs):
            self.found.otherwise.add(id(by))
        if any(ref.how == VIEW for ref in refs):
            self.found.parts.add(id(by))
        for ref in refs:
            if ref.how == MAYBE:
                continue
            name, before = lender(ref.region), root(ref.region)
            found = {name: ref.how} if name else {}
            if before[0] in ("new", "old"):  # what an earlier write made of it
                found |= self.found.given.get(node_of(before), {})  # type: ignore[call-overload]
            given = self.found.given.setdefault(id(by), {}) if found else {}
            for lent, how in found.items():
                given[lent] = max(how, given.get(lent, SAME))
            self.state.written |= found.keys()

    def renew_elements(
        self, holders: Refs, by: int, new: Refs, name: str = ELEMENTS, each: bool = False
    ) -> None:
        """``ys[i] += 1`` puts the new tensor where the old one was; ``each``: everywhere."""
        for holder in holders:
            for place in self.state.places(holder, name):
                held = self.state.inside.get(place, NO_REFS)
                kept = {
                    r._replace(stale=0) if r.stale == by and (each or not r.how) else r
                    for r in held
                }
                self.state.hold(place, frozenset(kept | new))

    def _at(
        self, path: tuple[str, ...], passed: dict[str, Refs], known: dict[tuple[str, ...], Refs]
    ) -> Refs:
        """Return what a path from an argument holds; ``known``: what its beginnings hold."""
        if path not in known:
            above = self._at(path[:-1], passed, known) if len(path) > 1 else NO_REFS
            refs = self.state.get(above, path[-1]) if above else NO_REFS
            known[path] = refs if len(path) > 1 else passed.get(path[0], NO_REFS)
        return known[path]

    def effects(
        self, node: ast.Call, summary: Summary, passed: dict[str, Refs],
        gathering: set[str], builds: bool,
    ) -> None:  # fmt: skip
        """Apply the reads and stores of a callee on its arguments; ``builds``: on a new object.

        ``gathering``: ``*args`` and ``**options``, whose elements are what a call passes.
        """
        for path in sorted(summary.asked):
            self.touch(node, ".".join(path), self._at(path, passed, {}))
        quiet = is_stopped(self.scene, self.scene.file, node)
        for path in sorted(summary.lost):
            if not quiet:
                self.lost(id(node), self._at(path, passed, {}))
        known: dict[Path, Refs] = {}  # nothing is bound while these are looked up
        if paths := {path: self._at(path, passed, known) for path in sorted(summary.rebound)}:
            own = regions(self.rebind(id(node), NO_REFS.union(*paths.values())))
            for path, refs in paths.items():
                new = frozenset(Ref(r.region) for r in refs if r.region in own)
                self.state.put(self._at(path[:-1], passed, {}), path[-1], new, anew=True)
        known = {}
        found = (r for path in summary.changed for r in self._at(path, passed, known))
        changed = frozenset(r for r in found if r.how < MAYBE)
        if changed:  # at once: every change goes over the whole state
            for name, seen in self.flight:
                if regions(changed) & regions(self.state.reach(seen)):
                    self.found.seen.setdefault(id(node), name)
            self.change(id(node), changed)
        known = {}
        if paths := {path: self._at(path, passed, known) for path in sorted(summary.added_to)}:
            sums = self.add_to(id(node), node, {(id(node), p): refs for p, refs in paths.items()})
            for path in paths:
                new, holders = sums[id(node), path], self._at(path[:-1], passed, {})
                if path[-1] == ELEMENTS:
                    self.renew_elements(holders, id(node), new)
                else:
                    self.state.put(holders, path[-1], new, anew=True)
        for name in sorted(summary.items):
            self.set_items(passed.get(name, NO_REFS))
        put: dict[tuple[Path, str], Refs] = {}
        for path, name, kept, how in sorted(summary.kept):
            given = made_as(passed.get(kept, NO_REFS), how)
            if kept in gathering:
                given |= made_as(self.state.get(passed.get(kept, NO_REFS), ELEMENTS), how)
            one = (self.state.make((id(node), path, name)),) if kept == MADE else given
            put[path, name] = put.get((path, name), NO_REFS).union(one)
        for (path, name), refs in put.items():
            self.state.put(self._at(path, passed, {}), name, refs, builds and len(path) == 1)
        if summary.back.added:
            self.found.added.add(id(node))

    def change_given(
        self, node: ast.Call, refs: Refs, others: list[Refs], assigns: bool, sets: bool = False
    ) -> None:
        """Note that a callee changes an argument; not what an unknown function may hand on.

        ``others`` are the arguments that it reads behind that; ``sets``: it sets elements of it.
        """
        sets = sets and bool(refs) and not any(r.how for r in refs)
        refs = frozenset(r for r in refs if r.how < MAYBE)
        hit = regions(refs)
        if any(hit & regions(other) for other in others):
            self.found.seen.setdefault(id(node), "another argument")
        self.note_given(node, refs, sets)
        if assigns and any(r.how == VIEW for r in refs):  # MindSpore cannot assign to a view
            self.found.lent.add(id(node))
        for name, seen in self.flight:
            if hit & regions(self.state.reach(seen)):
                self.found.seen.setdefault(id(node), name)
        self.state.write(refs, id(node), assigns or sets)

    def change_first(self, node: ast.Call, refs: Refs) -> Refs:
        """Note that the first layer of a Sequential changes what that is called with; return it."""
        name = leading(self.scene, node)
        if name is None:
            self.change_given(node, refs, [], False)
            return refs
        others = [held for held in self.flight if held[0] != name.id]
        read = len(others) < len(self.flight)  # by what the statement does behind the call
        self.flight[:] = others
        new = self.write(node, name, refs, "again")
        if read:
            self.found.renewed.add(id(node))
            self.flight.append((name.id, new))
        return new

    def held_by_callee(self, node: ast.Call, receiver: Refs) -> Refs:
        """Read what a function that an object holds was made with: ``partial(torch.add, x)``."""
        if not isinstance(node.func, ast.Attribute) or is_all(self.scene.kind(node.func), "method"):
            return NO_REFS
        places = ((r.region, node.func.attr) for r in receiver)
        held = self.state.reach(NO_REFS.union(*(self.state.inside.get(p, NO_REFS) for p in places)))
        made = frozenset(r for r in held if r.region[0] != "field")
        self.read(ast.unparse(node.func), made)
        return made_as(made, MAYBE)


def through_data(scene: Scene, expr: ast.expr) -> bool:
    """``h.data``, ``h.data[i]``, ``h.data.mul_(2)``: no gradient comes along in torch either."""
    while isinstance(expr, (ast.Subscript, ast.Call, ast.Attribute)):
        if is_data(scene, expr):
            return True
        expr = expr.func if isinstance(expr, ast.Call) else expr.value
    return False


def _changes_object(by: ast.AST, expr: ast.expr) -> bool:
    """A method, an item, what ``out=`` names: what is written for these can change the very object;
    no layer can."""
    if not isinstance(by, ast.Call) or any(k.value is expr for k in by.keywords if k.arg == "out"):
        return True
    return isinstance(by.func, ast.Attribute) and (
        by.func.value is expr or "init" in ast.unparse(by.func)
    )


def spread_out(
    function: Function, node: ast.Call, names: list[str], args: list[Refs], named: dict[str, Refs]
) -> tuple[dict[str, Refs], frozenset[str]]:
    """Return what a call with ``*args`` or ``**kwargs`` may pass for each parameter, and those
    that take one of these."""
    unpacked = [isinstance(a, ast.Starred) for a in node.args]
    before = unpacked.index(True) if any(unpacked) else len(args)
    own = dict(zip(names, args[:before], strict=False)) | named
    some = NO_REFS.union(*args[before:], own.pop("**", NO_REFS))
    arguments = function.node.args
    every = [p.arg for p in all_parameters(arguments)]
    rest = {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
    more = NO_REFS.union(*args[len(names) :], *(own[n] for n in own if n not in every))
    passed = {n: some | more if n in rest else own.get(n, some) for n in every}
    return passed, frozenset(every) - {*own} - (rest if more else set())


def untouched_rest(unit: ast.AST | None) -> frozenset[str]:
    """Return the ``*args`` and ``**kwargs`` of a function that puts nothing into them: two of the
    elements are as much apart as two of its parameters."""
    if not isinstance(unit, FUNCTIONS):
        return frozenset()
    names = {a.arg for a in (unit.args.vararg, unit.args.kwarg) if a is not None}
    for node in ast.walk(unit):
        held = getattr(node, "value", None)
        touched = isinstance(node, (ast.Subscript, ast.Name)) and not isinstance(node.ctx, ast.Load)
        touched |= isinstance(node, ast.Attribute) and node.attr in ("update", "setdefault")
        if touched:
            names.discard(getattr(node if isinstance(node, ast.Name) else held, "id", ""))
    return frozenset(names)


def without(refs: Refs, lenders: Collection[str]) -> Refs:
    """Return the references but those to what such parameters hold."""
    return frozenset(r for r in refs if lender(r.region) not in lenders) if lenders else refs
