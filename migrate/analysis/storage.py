"""The lattice of shared storage: what names and containers may hold, and what a write does to it.

A *region* stands for the tensors (or the container) made at one place: the one made last, or all
made before it. A name holds references to regions; a reference goes stale when its region is
written under another name. ``docs/inplace.md`` has the proof that rests on this.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate.syntax.trees import all_names

Region = tuple[Hashable, ...]
SAME, VIEW, MAYBE = 0, 1, 2
ELEMENTS = "[]"
REST = "*"  # what a region holds at any depth, not told apart
REGISTRIES = ("__dict__", "_parameters")  # their entries are attributes of the object
COMPUTED = "{}"  # the attributes whose names the program computes: ``f"{kind}_freq"``
DEEPEST = 6
MANY_FIELDS, SHALLOW = 200, 2  # with so many attributes in sight fewer are told apart


class Ref(NamedTuple):
    """One tensor that a name may hold.

    ``stale`` is the write that it did not see, or 0. ``how``: the very object (SAME), a part or
    another shape of it (VIEW), or what an unknown function made of it (MAYBE).
    """

    region: Region
    stale: int = 0
    how: int = SAME


MOST_STEPS = 8_000_000  # some seconds, in all walks of a function; ordinary ones take thousands
MOST_WALKS = 32  # of a function that a cycle of calls asks for again and again
Refs = frozenset[Ref]
NO_REFS: Refs = frozenset()


def made_as(refs: Refs, how: int) -> Refs:
    """The same regions, at best as ``how``."""
    return frozenset(r if r.how >= how else r._replace(how=how) for r in refs)


def regions(refs: Refs) -> frozenset[Region]:
    return frozenset(r.region for r in refs)


def path_of(region: Region) -> tuple[str, ...]:
    """Return a parameter and the attributes that lead from it to a region; () for others."""
    return _path(region, "param")


def outer_path(region: Region) -> tuple[str, ...]:
    """Return a variable of outside and the attributes that lead to a region; () for others."""
    return _path(region, "outer")


def _path(region: Region, kind: str) -> tuple[str, ...]:
    names: list[str] = []
    while region[0] == "field":
        names.append(str(region[2]))
        region = region[1]  # type: ignore[assignment]
    return (str(region[1]), *reversed(names)) if region[0] == kind else ()


def method_owners(refs: Refs, method: str) -> Refs:
    """Return the objects whose bound method is among some values."""
    fields = (r.region for r in refs if r.region[0] == "field")
    found = [r if is_rest(r) else r[1] for r in fields if r[2] in (method, REST)]
    return frozenset(Ref(r[1] if r[0] == "maybe" else r) for r in found)  # type: ignore[index,arg-type]


def is_rest(region: Region) -> bool:
    """Whether a region stands for all that another one holds."""
    return region[0] == "field" and region[2] == REST


def root(region: Region) -> Region:
    """The region that holds the one that holds ... this one."""
    while region[0] in ("field", "item"):
        inner = region[1]
        assert isinstance(inner, tuple)
        region = inner
    return region


def lender(region: Region) -> str:
    """The parameter that is the tensor, or a container of it; "" when there is none."""
    while region[0] == "item" or (region[0] == "field" and region[2] == ELEMENTS):
        region = region[1]  # type: ignore[assignment]
    return str(region[1]) if region[0] == "param" else ""


def node_of(region: Region) -> Hashable:
    """Return the id of the syntax node that made a region, or what stands in its place."""
    return region[1][0] if isinstance(region[1], tuple) else region[1]


def is_held(region: Region) -> bool:
    """Whether an object or a container that is not of this function's making holds the tensor."""
    return region[0] in ("field", "outer")


def _is_deep(region: Region, name: str, most: int) -> bool:
    """Return whether an attribute of a region is not told apart from others that it holds.

    The path is long, or the attribute is on it already, as in a tree of nodes of one class; of
    elements there may be two.
    """
    element = _is_element(name)
    depth, same = 0, -1 if element else 0
    while region[0] in ("field", "item"):
        depth += 1
        same += _is_element(str(region[2])) if element else region[2] == name
        if depth >= most or same > 0:
            return True
        region = region[1]  # type: ignore[assignment]
    return region[0] == "maybe" and depth > 0  # of what an unknown function made


def _holding(region: Region) -> Iterator[Region]:
    """Give what holds a region, what holds that, and so on."""
    while region[0] in ("field", "item"):
        region = region[1]  # type: ignore[assignment]
        yield region


def wholes(region: Region) -> tuple[Region, ...]:
    """A region and the values it was unpacked from."""
    found = [region]
    while region[0] == "item":
        region = region[1]  # type: ignore[assignment]
        found.append(region)
    return tuple(found)


def _old(region: Region) -> Region:
    """The region of what was made here in earlier rounds of a loop."""
    if region[0] == "new":
        return ("old", *region[1:])
    return (region[0], _old(region[1]), *region[2:])  # type: ignore[arg-type]


class Intricate(Exception):
    """Too many tensors may share storage: the analysis of the function is given up."""


def one_more_walk(steps: list[int]) -> None:
    """Count the start of a walk among the steps of a function."""
    steps[0] += MOST_STEPS // MOST_WALKS


@dataclass
class State:
    """What the names and the containers hold at one point of a function.

    ``views`` maps a name to the expression of another name that it surely is a view of, or is.
    ``written`` are the parameters whose storage was changed on some way.
    ``cut`` maps what took the numbers of a value without its gradient to the writes that did so.
    ``unsure`` are writes of what may be no tensor: a sure one counts before them. ``steps`` counts
    the references that were gone through in all walks of the function, ``made`` holds the regions
    made anywhere in it, ``leaves`` the places that make Parameters, ``keys`` the keys written
    out in it: ``['lr']``; ``roots`` remembers the outermost regions of sets of references,
    ``fields`` the attributes that were there before the walk, ``rests`` those of which something
    was put into the rest, ``entries`` the names under which regions hold anything in any state,
    ``same`` maps names that the program computes as well to the one that stands for them;
    ``laps`` says for which items of what is written out an expression is evaluated, each by itself.
    """

    names: dict[str, Refs] = field(default_factory=dict)
    inside: dict[tuple[Region, str], Refs] = field(default_factory=dict)
    cut: dict[Region, frozenset[int]] = field(default_factory=dict)
    unsure: set[int] = field(default_factory=set, compare=False)
    steps: list[int] = field(default_factory=lambda: [0], compare=False)
    made: set[Region] = field(default_factory=set, compare=False)
    leaves: set[Hashable] = field(default_factory=set, compare=False)
    keys: dict[str, None] = field(default_factory=dict, compare=False)
    roots: dict[Refs, frozenset[Region]] = field(default_factory=dict, compare=False)
    fields: set[Region] = field(default_factory=set, compare=False)
    rests: set[Region] = field(default_factory=set, compare=False)
    entries: dict[Region, dict[str, None]] = field(default_factory=dict, compare=False)
    same: Mapping[str, str] = field(default_factory=dict, compare=False)
    views: dict[str, ast.expr] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    laps: list[int] = field(default_factory=list, compare=False)

    def copy(self) -> State:
        return self.with_names(
            dict(self.names), dict(self.inside), dict(self.cut), dict(self.views)
        )

    def with_names(
        self,
        names: dict[str, Refs],
        inside: dict[tuple[Region, str], Refs],
        cut: dict[Region, frozenset[int]],
        views: dict[str, ast.expr],
    ) -> State:
        """Return a state of the same walk that holds something else."""
        shared = self.unsure, self.steps, self.made, self.leaves, self.keys, self.roots
        held = self.fields, self.rests, self.entries, self.same, views, self.written
        return State(names, inside, cut, *shared, *held, self.laps)

    def bound(self, name: str) -> None:
        """Forget the views of a name, and through it, that is bound to another value."""
        for other, view in list(self.views.items()):
            mentions = name in all_names(view)
            if other == name or mentions:
                del self.views[other]

    def make(self, place: Hashable) -> Ref:
        """A new tensor or container; what was made at this place before is now an old one."""
        if self.laps:
            place = (*(place if isinstance(place, tuple) else (place,)), "lap", *self.laps)
        region: Region = ("new", place)
        if region in self.made:
            self._age(region)
        self.made.add(region)
        return Ref(region)

    def next_round(self, inside: frozenset[int]) -> None:
        """Age what an earlier round of a loop made, at the places of these syntax nodes.

        Two branches of one round make new tensors; what they made in the round before is neither.
        """
        for region in sorted(self.made & self._held_regions(), key=str):
            if node_of(region) in inside:
                self._age(region)

    def _held_regions(self) -> set[Region]:
        """Return the outermost regions that anything holds, or that hold anything."""
        held = {root(r) for r, _ in self.inside}
        return held.union(*map(self._roots, (*self.names.values(), *self.inside.values())))

    def _age(self, region: Region) -> None:
        self._replace(lambda r: _aged(r, region), frozenset((region,)))
        moved = [(r, f) for r, f in self.inside if root(r) == region]
        for where, name in moved:
            old = (_old(where), name)
            self.hold(old, self.inside.get(old, NO_REFS) | self.inside.pop((where, name)))

    def write(self, target: Refs, by: int, assigned: bool = False) -> None:
        """Everything that may share storage with the target goes stale.

        ``assigned`` keeps who holds the very object: it is the object that changes.
        """
        hit = {above for r in target for above in wholes(r.region)}
        own = regions(target)
        sure = regions(frozenset(r for r in target if r.how == SAME))
        sure -= regions(frozenset(r for r in target if r.how != SAME))
        rests = {r[1] for r in own if is_rest(r)}
        under = {("field", r, REST) for one in own for r in _holding(one)}

        def change(ref: Ref) -> Ref:
            touched = ref.region in hit or not own.isdisjoint(wholes(ref.region))
            among = ref.region in under or not rests.isdisjoint(_holding(ref.region))
            touched = touched or among
            whole = assigned and ref.how == SAME and (among or ref.region in sure)
            seen = (ref.stale > 0 and ref.stale not in self.unsure) or not touched or whole
            return ref if seen else ref._replace(stale=by)

        self._replace(change, frozenset(root(r.region) for r in target))

    def _replace(self, change: object, under: frozenset[Region]) -> None:
        """Change the references to what some outermost regions hold; no other may be meant."""
        assert callable(change)
        for names in (self.names, self.inside):
            self._step(len(names) // 8)
            for key, refs in names.items():
                if under.isdisjoint(self.roots.get(refs) or self._roots(refs)):
                    continue
                self._step(len(refs))
                new = frozenset(change(r) for r in refs)
                if new != refs:
                    names[key] = new  # type: ignore[index]

    def _roots(self, refs: Refs) -> frozenset[Region]:
        if refs not in self.roots:
            self.roots[refs] = frozenset(root(r.region) for r in refs)
        return self.roots[refs]

    def _step(self, number: int) -> None:
        self.steps[0] += number
        if self.steps[0] > MOST_STEPS:
            raise Intricate

    def is_object(self, region: Region) -> bool:
        """Return whether a write changes the object itself: it is aliased, or is a Parameter."""
        made = region[0] in ("new", "old") and node_of(region) in self.leaves
        return is_held(region) or made

    def is_known(self, ref: Ref) -> bool:
        """Return whether anything but the expression that made it holds it."""
        if ref.region[0] != "new":
            return True
        held = (*self.names.values(), *self.inside.values())
        return any(r.region == ref.region for refs in held for r in refs)

    # -- containers and objects -------------------------------------------------------------

    def hold(self, place: tuple[Region, str], refs: Refs) -> None:
        """Set what an attribute or the elements of a region hold."""
        region, name = place
        self.inside[place] = refs
        self.entries.setdefault(region, {})[name] = None

    def get(self, holders: Refs, name: str) -> Refs:
        """What an attribute or the elements of these hold."""
        found: set[Ref] = set()
        self._mention(name)
        self._step(len(holders))
        most = DEEPEST if len(self.fields) < MANY_FIELDS else SHALLOW
        name = REST if name in REGISTRIES else self.same.get(name, name)
        if name == REST:
            found |= self.reach(holders) - holders
        for rest in {r for h in holders for r in self._rests_around(h.region)}:
            found |= self.inside.get((rest, ELEMENTS), NO_REFS)
        for holder in _in_order(holders):
            if is_rest(holder.region):
                found.add(holder)
                continue
            known = self.inside.get((holder.region, name))
            if name == ELEMENTS:
                self._step(len(self.keys))
                for key in self.keys:
                    found |= self.inside.get((holder.region, key), NO_REFS)
            if known is not None:
                found |= known
                continue
            made = holder.region[0] in ("new", "old")
            stored = made or name.startswith("['")
            given = self.inside.get((holder.region, ELEMENTS), NO_REFS) if stored else NO_REFS
            found |= given
            if name == ELEMENTS and made:
                continue
            first = self._first_seen(holder, name, most)
            found |= first
            if given:  # both are found again
                self.hold((holder.region, name), first | given)
        self._step(len(found))
        return frozenset(found)

    def _mention(self, name: str) -> None:
        if name.startswith("['"):
            self.keys[name] = None

    def places(self, holder: Ref, name: str) -> list[tuple[Region, str]]:
        """Return where an element may lie: under a key that is not written out, under each."""
        found = [(holder.region, name)]
        if name == ELEMENTS:
            self._step(len(self.keys))
            every = ((holder.region, key) for key in self.keys)
            found += [place for place in every if place in self.inside]
        return found

    def keyed(self, holders: Refs) -> dict[str, Refs] | None:
        """Return what dicts hold by their keys; None where not all keys are known."""
        for holder in holders:
            made = holder.region[0] in ("new", "old") and holder.how == SAME
            if not made or self.inside.get((holder.region, ELEMENTS)) != NO_REFS:
                return None
        found: dict[str, Refs] = {}
        for key in self.keys:
            held = [self.inside.get((holder.region, key), NO_REFS) for holder in holders]
            if any(held):  # the others are keys of other dicts
                found[key] = NO_REFS.union(*held)
        return found

    def held(self, modules: Refs, layers: bool) -> Refs:
        """What Modules hold; where Parameters are meant, not the layers a container is made of."""
        found = self.get(modules, "parameters")
        made = {r for r in found if r.region[0] in ("new", "old")}
        return found if layers else found - {r for r in made if not self.is_object(r.region)}

    def _first_seen(self, holder: Ref, name: str, most: int = DEEPEST) -> Refs:
        """What an object that was not made here holds from the beginning."""
        if _is_element(name) and _stands_for_inner(holder):
            return frozenset((holder,))
        if _is_deep(holder.region, name, most):
            name = REST
        unsure = _is_unsure(holder) and name != ELEMENTS
        owner: Region = ("maybe", holder.region) if unsure else holder.region
        ref = Ref(("field", owner, name), holder.stale)
        self.fields.add(ref.region)
        if (owner, name) not in self.inside:
            self.hold((owner, name), frozenset((ref,)))
        if name == ELEMENTS:
            ref = ref._replace(how=holder.how)
        return self.inside[(owner, name)] if unsure else frozenset((ref,))

    def put(self, holders: Refs, name: str, value: Refs, anew: bool = False) -> None:
        """Store a value; ``anew`` replaces what was there (one holder, one attribute).

        What is stored under a key that is not written out may lie under each that is.
        """
        self._mention(name)
        name = self.same.get(name, name)
        anew = anew and name != COMPUTED  # which stands for several attributes
        for holder in _in_order(holders):
            if name == REST or is_rest(holder.region):
                self._put_rest(holder, value)
                continue
            key = (holder.region, name)
            for place in self.places(holder, name)[1:]:
                self.inside[place] |= value
            several = holder.region[0] == "old" or _stands_for_inner(holder)
            if anew and len(holders) == 1 and not several:
                self.hold(key, value)
                continue
            before = self.get(frozenset((holder,)), name)
            again = {r.region for r in before if r.region[0] not in ("old", "field")}
            self._step(len(before) + len(value))
            twice = frozenset(r._replace(how=MAYBE) for r in value if r.region in again)
            self.hold(key, before | value | twice)

    def _put_rest(self, holder: Ref, value: Refs) -> None:
        """Store a value somewhere in what an object holds."""
        inner = holder.region
        if not is_rest(inner):
            self._first_seen(holder, REST)
            inner = ("maybe", inner) if _is_unsure(holder) else inner
            inner = ("field", inner, REST)
        self.rests.add(inner)
        held = self.inside.get((inner, ELEMENTS), NO_REFS)
        self.hold((inner, ELEMENTS), held | value)

    def _rests_around(self, region: Region) -> Iterator[Region]:
        """Yield the rests of an object, and of those that hold it, into which something was put."""
        if self.rests:
            for one in (region, *_holding(region)):
                rest = one if is_rest(one) else ("field", one, REST)
                if rest in self.rests:
                    yield rest

    def reach(self, refs: Refs) -> Refs:
        """These and all that they hold."""
        inside, entries, rests = self.inside, self.entries, self.rests
        if not inside or not refs:
            return refs
        found, todo, passed = set(refs), [ref[0] for ref in refs], set[Region]()
        cost = 8 if rests else 1  # the rests around a region are gone through
        while todo:
            region = todo.pop()
            if region in passed:
                continue
            passed.add(region)
            self._step(cost)
            held = [inside[place] for name in entries.get(region, ())
                    if (place := (region, name)) in inside]  # fmt: skip
            for rest in self._rests_around(region) if rests else ():
                if rest not in passed:  # once is enough: much lies below the same rest
                    passed.add(rest)
                    held.append(inside.get((rest, ELEMENTS), NO_REFS))
            for some in held:
                self._step(len(some) // 8)
                if new := some - found:
                    todo += [ref[0] for ref in new]
                    found |= new
        return frozenset(found)

    def reaching(self, starts: Set[Region]) -> dict[Region, frozenset[str]]:
        """Return the parameters of which each of some regions reaches a part.

        What holds what is gone through once, and then backwards from what lies in a parameter:
        asking `reach` for each region would visit what they share again and again.
        """
        holders: dict[Region, list[Region]] = {}
        seen, todo = set(starts), list(starts)
        ends: dict[str, list[Region]] = {}
        while todo:
            region = todo.pop()
            if region[0] == "around":  # it stands between a rest and those whose rest it is
                held = [r[0] for r in self.inside.get((region[1], ELEMENTS), ())]  # type: ignore[arg-type]
            else:
                top = root(region)
                if top[0] == "param":
                    ends.setdefault(str(top[1]), []).append(region)
                places = [(region, name) for name in self.entries.get(region, ())]
                held = [ref[0] for place in places for ref in self.inside.get(place, ())]
                held += [("around", rest) for rest in self._rests_around(region)]
            self._step(1)
            for one in held:
                holders.setdefault(one, []).append(region)
                if one not in seen:
                    seen.add(one)
                    todo.append(one)
        found: dict[Region, set[str]] = {}
        for name, regions in ends.items():
            passed, todo = set(regions), regions
            while todo:
                for one in holders.get(todo.pop(), ()):
                    if one not in passed:
                        passed.add(one)
                        todo.append(one)
            for one in starts & passed:
                found.setdefault(one, set()).add(name)
        return {one: frozenset(names) for one, names in found.items()}

    def escaping(self, own: frozenset[Region]) -> Refs:
        """What is held by objects that outlive the function; ``own``: parameters that do not."""
        holders = ((region, refs) for (region, _), refs in self.inside.items())
        held = (refs for region, refs in holders if _outlives(region) and region not in own)
        return self.reach(NO_REFS.union(*held))


def _is_unsure(holder: Ref) -> bool:
    return holder.how == MAYBE and root(holder.region)[0] != "maybe"


def _is_element(name: str) -> bool:
    return name.startswith("[")


def _stands_for_inner(ref: Ref) -> bool:
    """Return whether it is an element of what an unknown call gave: the elements of this one are
    not told apart from it, as every key that is written out would double the regions."""
    region = ref.region
    element = region[0] == "field" and _is_element(str(region[2]))
    return element and root(region)[0] in ("new", "old", "maybe")


def _outlives(region: Region) -> bool:
    return root(region)[0] in ("param", "outer", "escaped")


def _in_order(refs: Refs) -> Iterable[Ref]:
    """Order regions by the first reference to them, the most certain reference first."""
    return (
        refs
        if len(refs) < 2
        else sorted(refs, key=lambda ref: (ref.how, ref.stale > 0, ref.stale < 0))
    )


def twice(held: Iterable[Refs]) -> Refs:
    """Return what more than one place of a container holds: a write by one leaves the others."""
    seen: set[Region] = set()
    again: set[Ref] = set()
    for refs in held:
        again |= {r._replace(how=MAYBE) for r in refs if r.how < MAYBE and r.region in seen}
        seen |= {r.region for r in refs}
    return frozenset(again)


def _aged(ref: Ref, region: Region) -> Ref:
    return ref._replace(region=_old(ref.region)) if root(ref.region) == region else ref


def joined(states: Iterable[State | None]) -> State | None:
    """What holds after any of several ways; None when there is none."""
    alive = [s for s in states if s is not None]
    if len(alive) < 2:
        return alive[0] if alive else None
    result = alive[0].with_names({}, {}, {}, {})
    result.written = frozenset().union(*(s.written for s in alive))
    for name, view in alive[0].views.items():
        if all(s.views.get(name) is view for s in alive):
            result.views[name] = view
    for region in dict.fromkeys(r for s in alive for r in s.cut):
        result.cut[region] = frozenset().union(*(s.cut.get(region, ()) for s in alive))
    for name in dict.fromkeys(n for s in alive for n in s.names):  # in one order on every run
        refs = _union([s.names.get(name, NO_REFS) for s in alive])
        if refs or all(name in s.names for s in alive):  # else it may be that of outside
            result.names[name] = refs
    for key in dict.fromkeys(k for s in alive for k in s.inside):
        held = [s.inside.get(key) for s in alive]
        if key[1] == REST:  # it is the same on every way
            held = [next(refs for refs in held if refs is not None)] * len(alive)
        result.inside[key] = _union([
            s.get(frozenset((Ref(key[0]),)), key[1]) if refs is None else refs
            for s, refs in zip(alive, held, strict=True)
        ])  # fmt: skip
    return result


def _union(some: list[Refs]) -> Refs:
    """Return the union; on most ways a name holds the very same."""
    first = some[0]
    return first if all(refs is first for refs in some) else NO_REFS.union(*some)
