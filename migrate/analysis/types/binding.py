"""Bind targets, and narrow variables by tests, in the state of a frame."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from migrate.analysis.program import Function
from migrate.analysis.types import class_texts, contents, narrowing, values
from migrate.analysis.types.annotations import annotated
from migrate.analysis.types.evidence import Bound
from migrate.analysis.types.frame import Frame, Note, State, joined
from migrate.analysis.types.kinds import (
    BOOL,
    MAX_DEPTH,
    NONE,
    NOTHING,
    UNKNOWN,
    Kind,
    Site,
    element,
    indirect,
    is_all,
    join,
    kind,
    may_be_any_module,
    place,
    sequence,
    without_none,
)

_Key = TypeVar("_Key")
_Growth = tuple[contents.Sites, Kind, str]  # at which sites, what is put in, under which key
NO_NAMES: Mapping[str, Any] = MappingProxyType({})


class Binding(Frame):
    """Assigns kinds to targets, and narrows kinds by tests."""

    hidden: frozenset[str] = frozenset()  # the variables of the comprehension that is evaluated

    # -- targets --------------------------------------------------------------------------------

    def bind(
        self,
        target: ast.expr,
        value: Kind,
        same: Mapping[str, str] = NO_NAMES,
        also: Mapping[str, int] = NO_NAMES,
    ) -> None:
        """Assign a kind to a target: a name, an attribute, a tuple of targets.

        ``same`` and ``also``: by name, where else its object is found; see `Bound`.
        """
        self.world.kinds[id(target)] = value
        if isinstance(target, ast.Name):
            name = target.id
            event = Bound(name, id(target), value, same.get(name, ""), also.get(name, 0))
            self.effects.events.append(event)
            known = self.recalled(target, value)
            noted = self.known.get(id(target)), id(target) in self.beside
            self.effects.recalled.append((id(target), *noted))
            if known >= UNKNOWN and (declared := self._declared(name)) != UNKNOWN:
                known = join(known - UNKNOWN, declared)
            self.bound(name, indirect(known))
            if id(target) in self.beside:
                self.annotate(name, Note(near=True))
        elif isinstance(target, ast.Attribute):
            self.kind(target.value)
            self.stored(target, indirect(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, same, also)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, sequence("list", element(value)))
        elif isinstance(target, ast.Subscript):
            self._put_item(target, indirect(value))

    def _declared(self, name: str) -> Kind:
        """Return what an annotation in this unit says of a variable."""
        annotation = self.world.declared(self.function or self.path, name)
        if annotation is None or name in self.hidden:
            return UNKNOWN
        self.effects.wide = True
        self.kind(annotation)
        return values.resolved(annotated(annotation, self.world.kinds), self.world)

    def _unpack(
        self,
        targets: list[ast.expr],
        value: Kind,
        same: Mapping[str, str],
        also: Mapping[str, int],
    ) -> None:
        """Bind the targets of a tuple; behind a star the places count from the end."""
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), len(targets))
        for index, item in enumerate(targets):
            if index == star:
                self.bind(item, value)
            else:
                at = index if index < star else index - len(targets)
                self.bind(item, place(value, at), same, also)

    # -- contents -------------------------------------------------------------------------------

    def put(self, holder: Kind, added: Kind, key: str = "") -> None:
        """Put something into the containers that a value may be; every name of them sees it."""
        self.grow(contents.sites(holder), added, key)

    def grow(self, sites: contents.Sites, added: Kind, key: str = "") -> None:
        """Put something into the containers that were made at some sites."""
        if not sites or not added:
            return
        self.effects.wide = True
        at, added = self.linked(sites), contents.shallower(indirect(added))
        if contents.ANYWHERE in at:  # what the program knows of them is that they hold anything
            at = frozenset(s for s in at if s != contents.ANYWHERE and not contents.is_told(s))
            added, key = UNKNOWN, contents.ANY_KEY
        added = contents.anything_in(added, at)  # what holds itself has no finite depth
        self._own()
        _grow_all(self.env, at, added, key)
        _grow_all(self.paths, at, added, key)
        for site in at:
            known, keys = self.effects.grown.get(site, (NOTHING, frozenset()))
            self.effects.grown[site] = (join(known, added), keys | ({key} if key else set()))
            if isinstance(site, str) and not contents.is_plain(added):
                self.link(added, contents.inside(site))

    def linked(self, sites: contents.Sites) -> contents.Sites:
        """Return the sites whose containers may be those of some sites."""
        version, asked, found = self.reached.get(sites, (-1, (), sites))
        joined_to = self.world.joined_to
        if version == len(self.joined) and all(joined_to(one) == others for one, others in asked):
            return found
        found, asked = self._linked(sites)
        self.reached[sites] = (len(self.joined), asked, found)
        return found

    def _linked(
        self, sites: contents.Sites
    ) -> tuple[contents.Sites, tuple[tuple[str, frozenset[str]], ...]]:
        """Return the sites, and what the answers of the program were that they follow from."""
        found, closed = set(sites), set[Site]()
        asked: list[tuple[str, frozenset[str]]] = []
        todo = list(sites)
        while todo:
            one = todo.pop()
            if self._ends(one, sites):
                continue
            new: set[Site] = self.links.get(one, _NO_SITES) - found
            if isinstance(one, str) and one[0] != "." and one not in closed:
                others = self.world.joined_to(one)
                asked.append((one, others))
                closed |= others
                new |= others - found
            todo += new
            found |= new
        return frozenset(found), tuple(asked)

    def linked_here(self, sites: contents.Sites) -> contents.Sites:
        """Return the sites whose containers this unit makes those of some sites."""
        found, todo = set(sites), list(sites)
        while todo:
            one = todo.pop()
            if not self._ends(one, sites):
                new = self.links.get(one, _NO_SITES) - found
                todo += new
                found |= new
        return frozenset(found)

    def _ends(self, one: Site, sites: contents.Sites) -> bool:
        """Return whether what is joined to a site says nothing of the containers of ``sites``."""
        if one == contents.ANYWHERE:
            return True  # each of them was made to hold anything when it was joined
        # which of the objects that have such an attribute is known
        return isinstance(one, str) and one[0] == "." and contents.of_unknown(one) not in sites

    def link(self, value: Kind, name: str) -> None:
        """Note that what has a name of its own outside of the unit holds this value from now on."""
        for depth, sites in enumerate(contents.levels(value)):
            if sites:
                self.join_sites(sites, contents.level(name, depth), contents.anything(value))

    def join_sites(self, sites: contents.Sites, other: Site, anything: Kind) -> None:
        """Note that containers of some sites may be those of another one.

        One that may hold itself holds whatever there is. What is put in goes over the whole state,
        so that is done once for all of the sites.
        """
        other = self._group(other)
        others = contents.levels_of(other) - {other}  # what its containers hold, or are held by
        joined, holding = set[Site](), set[Site]()
        for site in map(self._group, sites):
            known = self.links.get(site, _NO_SITES)
            if not others.isdisjoint(known):
                holding |= {site, *(others & known)}
                continue
            joined.add(site)
            if other != site and other not in known:
                self.links.setdefault(site, set()).add(other)
                self.links.setdefault(other, set()).add(site)
                self.joined.append((site, other))
                self.effects.links.append((site, other))
        if holding:
            self.grow(frozenset(holding | {other}), anything)
        if joined and contents.ANYWHERE in self.linked(both := frozenset(joined | {other})):
            self.grow(both, UNKNOWN)

    def _group(self, site: Site) -> Site:
        """Return the site that represents that of an attribute or a global in a large group."""
        if isinstance(site, str) and contents.is_told(site):
            return contents.ANYWHERE if contents.ANYWHERE in self.world.joined_to(site) else site
        return site

    def _put_item(self, target: ast.Subscript, value: Kind) -> None:
        """``d["a"] = x``: what is put into a list or dictionary belongs to its elements."""
        holder = self.kind(target.value)
        self.kind(target.slice)
        if isinstance(target.slice, ast.Slice):
            self.put(holder, element(value))
        else:
            key = target.slice.value if isinstance(target.slice, ast.Constant) else contents.ANY_KEY
            self.put(holder, value, str(key))
        if isinstance(target.value, ast.Name):  # the container as it is now
            self.world.kinds[id(target.value)] = self.env.get(target.value.id, holder)

    def bound(self, name: str, value: Kind) -> None:
        """Bind a variable of this unit, or one of a unit around it."""
        outside = self.function is not None and name in self.function.globals
        if not outside or name in self.hidden:
            value, more = self.with_inside(name, value)
            for sites, added, key in more:
                self.grow(sites, added, key)  # other names of it hold that as well
            # the definitions of a module are known from its start: they make no new state
            if self.env.get(name) != value or name in self.notes or self.paths:
                self.forget(name)
                self.assign(name, value)
        if name not in self.hidden:
            value = value if outside else self.env[name]
            self.effects.bound[name] = join(self.effects.bound.get(name, NOTHING), value)
            self.variables[name] = join(self.variables.get(name, NOTHING), value)

    def with_inside(self, name: str, value: Kind) -> tuple[Kind, list[_Growth]]:
        """Return the kind of a variable with what functions inside of the unit do to it.

        The second are what they put in, by the sites that get it.
        """
        captured, scope = self.captured, (self.function, name)
        for function in captured.bound.get(scope, ()):
            value = join(value, self.world.binds(function, name))
        if not contents.all_sites(value):
            return value, []
        found: list[_Growth] = []
        for more in self._put_inside(scope):
            for depth, sites in enumerate(contents.levels(value)):
                added, keys = more.get(depth, (NOTHING, ()))
                for key in sorted(keys) or [""] if added else []:
                    value = contents.grown(value, sites, added, key)
                    found.append((sites, added, key))
        return value, found

    def _put_inside(self, scope: tuple[Function | None, str]) -> Iterator[contents.More]:
        """Yield what functions put into a variable of this unit."""
        if scope[0] is None:
            yield self.world.put(f"={self.path}:{scope[1]}")
        for function in self.captured.filled.get(scope, ()):
            grown, site = self.world.grown(function), f"={scope[1]}"
            some = ((depth, contents.level(site, depth)) for depth in range(MAX_DEPTH))
            yield {depth: grown[one] for depth, one in some if one in grown}

    def stored(self, target: ast.Attribute, value: Kind) -> None:
        """Store an attribute; overridden where attributes are collected."""

    # -- tests ----------------------------------------------------------------------------------

    def tested(self, test: ast.expr) -> tuple[State | None, State | None]:
        """Evaluate a test; return the states where it is true and where it is false.

        None for a state that control never comes to. Events of parts that may not be evaluated are
        noted as such.
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            true, false = self.tested(test.operand)
            self.world.kinds[id(test)] = BOOL
            return false, true
        if isinstance(test, ast.BoolOp):
            return self._tested_parts(test)
        self.kind(test)
        after = self.leave()
        true = self._narrowed(test, True)
        self.enter(after)
        false = self._narrowed(test, False)
        self.enter(after)
        return true, false

    def _tested_parts(self, test: ast.BoolOp) -> tuple[State | None, State | None]:
        """Test the parts of ``and`` and ``or``: each only where the ones before let control on."""
        stops_at = isinstance(test.op, ast.Or)
        stopped: State | None = None
        found: list[Kind] = []
        outer, levels = self.effects.events, []
        for index, part in enumerate(test.values):
            if index:
                levels.append(self.effects.events)
                self.effects.events = []
            true, false = self.tested(part)
            found.append(self.world.kinds[id(part)])
            stops, on = (true, false) if stops_at else (false, true)
            stopped = _either(stopped, stops)
            if on is None:
                if index < len(test.values) - 1:
                    self.enter(stops or self.leave())
                    self._never(test.values[index + 1 :])
                break
            self.enter(on)
        else:
            on = self.leave()
        for level in reversed(levels):
            inside, self.effects.events = self.effects.events, level
            self.forked(inside, [])
        assert self.effects.events is outer
        if stops_at:
            found = [*(without_none(f) for f in found[:-1]), found[-1]]
        self.world.kinds[id(test)] = join(*found) or UNKNOWN
        self.enter(_either(stopped, on) or self.leave())
        return (stopped, on) if stops_at else (on, stopped)

    def _never(self, parts: list[ast.expr]) -> None:
        """Evaluate what control does not come to by what is known here; it changes nothing."""
        state, events = self.leave(), self.effects.events
        self.effects.events = []
        for part in parts:
            self.kind(part)
        self.effects.events = events
        self.enter(state)

    def _narrowed(self, test: ast.expr, holds: bool) -> State | None:
        """Narrow kinds where a test holds: isinstance, ``is None``, truth, the name of a class."""
        possible = True
        if holds and (told := class_texts.asked(test, self.function)):
            self._narrow_class(told)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            none = isinstance(test.comparators[0], ast.Constant) and (
                test.comparators[0].value is None
            )
            if none and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
                possible = self._narrow_none(test.left, isinstance(test.ops[0], ast.Is) == holds)
            elif isinstance(test.ops[0], _SAYS_YES if holds else _SAYS_NO):
                if isinstance(test.left, ast.Call):
                    self._narrow_type(test.left, test.comparators[0])
                elif isinstance(test.ops[0], (ast.In, ast.NotIn)):
                    self._narrow_member(test.left, test.comparators[0])
        elif isinstance(test, ast.Call) and getattr(test.func, "id", "") == "callable":
            possible = self._narrow_callable(test, holds)
        elif isinstance(test, ast.Call):
            self._narrow_isinstance(test, holds)
        elif isinstance(test, (ast.Name, ast.NamedExpr)) and holds:
            possible = self._narrow_none(test, False)
        return self.leave() if possible else None

    def _narrow(self, name: str, value: Kind) -> None:
        """Narrow the kind of a variable; for a layer, remember its kind before the test."""
        before = self.env[name]
        if value is before or value == before:
            return
        if value and all(a.kind == "Module" for a in value) and may_be_any_module(before):
            note = self.note(name)
            self.annotate(name, replace(note, told=note.told or before))
        self.learn(name, value)

    def _narrow_none(self, node: ast.expr, is_none: bool) -> bool:
        """Narrow a name that is compared with None; False where the test cannot come out so."""
        node = node.target if isinstance(node, ast.NamedExpr) else node
        if not isinstance(node, ast.Name) or node.id not in self.env:
            return True
        value = self.env[node.id]
        if is_none:
            known = bool(value) and not {"None", "unknown"} & {a.kind for a in value}
            if not known or not is_all(value, "Tensor"):  # a Tensor is not: unreachable
                self.learn(node.id, NONE)
            return True
        rest = frozenset(a for a in value if a.kind != "None")
        if not rest and self.prunes:
            self.effects.pruned = self.pruned = True
            return False
        self.learn(node.id, rest or UNKNOWN)
        return True

    def _narrow_callable(self, test: ast.Call, holds: bool) -> bool:
        """Narrow a name by ``callable(x)``; False where the test cannot come out so."""
        subject = test.args[0] if len(test.args) == 1 else None
        if not isinstance(subject, ast.Name) or subject.id not in self.env:
            return True
        value = self.env[subject.id]
        rest = narrowing.called(value, holds)
        if value and not rest and self.prunes:
            self.effects.pruned = self.pruned = True
            return False
        self._narrow(subject.id, rest or value)
        return True

    def _narrow_isinstance(self, test: ast.Call, holds: bool) -> None:
        asked = self.world.kinds.get(id(test.func), NOTHING)
        if len(test.args) == 1 and any(a.name == "torch.is_tensor" for a in asked):
            subject, tested = test.args[0], kind("ref", "torch.Tensor")
        elif getattr(test.func, "id", "") == "isinstance" and len(test.args) == 2:
            subject, tested = test.args[0], self.world.kinds.get(id(test.args[1]), UNKNOWN)
        else:
            return
        subject = subject.target if isinstance(subject, ast.NamedExpr) else subject
        if not isinstance(subject, ast.Name) or subject.id not in self.env:
            return
        value = self.env[subject.id]
        if holds:
            self._narrow(subject.id, narrowing.holding(value, tested, self.world) or value)
        else:
            rest = narrowing.failing(value, tested, self.world)
            if len(test.args) == 2 or rest - UNKNOWN:  # a Tensor that is none: unreachable
                self._narrow(subject.id, rest)

    def _narrow_type(self, call: ast.Call, classes: ast.expr) -> None:
        """``type(m) is nn.ReLU``, ``type(m) in (nn.ReLU, nn.SiLU)``: m is one of them."""
        subject = call.args[0] if getattr(call.func, "id", "") == "type" and call.args else None
        if not isinstance(subject, ast.Name) or subject.id not in self.env:
            return
        tested = self.world.kinds.get(id(classes), UNKNOWN)
        if any(a.kind in ("list", "tuple") for a in tested):
            tested = element(tested)
        value = self.env[subject.id]
        self._narrow(subject.id, narrowing.holding(value, tested, self.world) or value)

    def _narrow_class(self, tests: tuple[class_texts.Asked, ...]) -> None:
        """``"Conv" in m.__class__.__name__``: of a Module that may be any, it is such a layer."""
        subject = tests[0].subject
        self.effects.wide = True
        value, table, program = self.env.get(subject, NOTHING), self.world.table, self.world.program
        if not may_be_any_module(value):
            return
        layers = sorted(class_texts.meant(tests, table, program))
        own = [c for c in self.world.classes() if any(a.meets(c.name) for a in tests)]
        bases = [row for c in own for b in self.world.torch_bases(c.key) for row in table.rows(b)]
        keeping = any("weight" in c.stores for c in own)
        renaming = any(row.weights for name in layers for row in table.rows(name))
        if (keeping and renaming) or any(row.weights for row in bases):
            return  # that class says what its weights are called
        found = [kind("Module", n) for n in layers]
        if subject in self.env and found:
            self._narrow(subject, join(*found))

    def _narrow_member(self, node: ast.expr, items: ast.expr) -> None:
        """``layer in LAYERS``: of a table of classes, it is one of them."""
        each = element(self.world.kinds.get(id(items), UNKNOWN))
        classes = all(a.kind in ("class", "ref") for a in each)
        if classes and isinstance(node, ast.Name) and self.env.get(node.id, NOTHING) >= UNKNOWN:
            self._narrow(node.id, each)


_NO_SITES: set[Site] = set()
_SAYS_YES, _SAYS_NO = (ast.Is, ast.Eq, ast.In), (ast.IsNot, ast.NotEq, ast.NotIn)


def _grow_all(kinds: dict[_Key, Kind], at: contents.Sites, added: Kind, key: str) -> None:
    for name, value in kinds.items():
        if not at.isdisjoint(contents.all_sites(value)):
            kinds[name] = contents.grown(value, at, added, key)


def _either(first: State | None, second: State | None) -> State | None:
    if first is None or second is None:
        return first or second
    return joined(first, second)
