"""In: a class of the project. Out: its bases, torch's among them, and the kinds of its members."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property

from migrate.program import Class, Function
from migrate.receivers import values
from migrate.receivers.contents import is_container
from migrate.receivers.flow import Flow
from migrate.receivers.kinds import (
    MODULE,
    MODULE_ONLY,
    NONE,
    NOTHING,
    UNKNOWN,
    Atom,
    Kind,
    join,
    kind,
    without_none,
)
from migrate.receivers.world import World

FUNCTIONS = frozenset(("torch.autograd.Function", "torch.autograd.function.Function"))


@dataclass(eq=False)
class Classes:
    """Answers about the classes of the project, remembered by their keys."""

    world: World
    _bodies: dict[str, dict[str, Kind]] = field(default_factory=dict)
    _members: dict[tuple[str, str], Kind] = field(default_factory=dict)
    _bases: dict[str, list[Kind]] = field(default_factory=dict)
    _mentions: dict[str, dict[str, list[Function]]] = field(default_factory=dict)
    _asking: set[tuple[str, str]] = field(default_factory=set)

    def class_body(self, key: str, variables: dict[str, Kind]) -> None:
        """The variables that a walk of the class's body has found."""
        self._bodies[key] = variables

    def bases(self, key: str) -> list[Kind]:
        """The kinds of the base classes as written."""
        if key not in self._bases:
            owner = self.world.program.classes[key]
            self._bases[key] = []
            if owner.parent is not None:
                self.world.flow(owner.parent)
            else:
                self.world.module(owner.path)
            del self._bases[key]
            found = [self._base(owner, b) for b in owner.node.bases]
            if UNKNOWN in found:  # asked while a module is on its way: it may be known later
                return found
            self._bases[key] = found
        return self._bases[key]

    def _base(self, owner: Class, node: ast.expr) -> Kind:
        known = self.world.kinds.get(id(node))
        if known is None:  # asked for while the module is still being walked
            known = Flow(self.world, owner.path, owner.parent).kind(node)
        return known

    def torch_bases(self, key: str) -> tuple[str, ...]:
        """The torch classes that a class of the project is derived from, nearest first."""
        found: list[str] = []
        for base in self._ancestors(key):
            for atom in base:
                if atom.kind == "ref" and atom.name not in found:
                    found.append(atom.name)
        return tuple(found)

    def _ancestors(self, key: str) -> list[Kind]:
        seen, todo, found = {key}, [key], []
        while todo:
            for base in self.bases(todo.pop(0)):
                found.append(base)
                for atom in base:
                    if atom.kind == "class" and atom.name not in seen:
                        seen.add(atom.name)
                        todo.append(atom.name)
        return found

    def is_module(self, key: str) -> bool:
        """Whether a class of the project is a torch Module."""
        return any(
            name.startswith(("torch.nn.", "einops.layers", "torchvision.ops"))
            and self.world.table.kind(name) in ("class", "")
            for name in self.torch_bases(key)
        )

    def is_function(self, key: str) -> bool:
        """Whether a class of the project is a torch.autograd.Function."""
        return not FUNCTIONS.isdisjoint(self.torch_bases(key))

    def member(self, key: str, name: str) -> Kind:
        """``instance.name`` for an instance of a class of the project."""
        place = (key, name)
        found = self._members.get(place, NOTHING)
        if place in self._members and UNKNOWN.isdisjoint(found):
            return found
        storing = self._storing(key, name)
        if place not in self._members and place not in self._asking:
            self._asking.add(place)
            found = self._own_member(key, name) or self.inherited(key, name)
            self._asking.discard(place)
            if any(map(is_container, found)):
                storing += self._filling(key, name)
            if all(map(self.world.settled, storing)):
                self._members[place] = found
        sure = place in self._members and UNKNOWN.isdisjoint(found)
        return found if sure else self.world.too_early(place, found, storing)

    def forget(self) -> None:
        """Members are asked for anew: what they rest on was walked again."""
        self._members.clear()

    def _storing(self, key: str, name: str) -> list[Function]:
        """The methods that store a member; ``__init__`` may register it by its name."""
        owner = self.world.program.classes[key]
        storing = owner.stores.get(name, [])
        start = owner.methods.get("__init__")
        return [*storing, start] if start is not None and start not in storing else list(storing)

    def _filling(self, key: str, name: str) -> list[Function]:
        """The methods that may put something into what an attribute holds."""
        owner = self.world.program.classes[key]
        if key not in self._mentions:
            found: dict[str, list[Function]] = {}
            for method in owner.methods.values():
                first = method.parameters[0].arg if method.parameters else ""
                for node in method.nodes:
                    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == first:
                        methods = found.setdefault(node.attr, [])
                        methods += [method] if method not in methods else []
            self._mentions[key] = found
        return self._mentions[key].get(name, [])

    def _own_member(self, key: str, name: str) -> Kind:
        owner = self.world.program.classes[key]
        method = owner.methods.get(name)
        if method is not None:
            if method.decorated("property", "cached_property"):
                return self.world.returns(method)
            return kind("method", method.key)
        self.world.module(owner.path)
        found = [self._bodies.get(key, {}).get(name, NOTHING)]
        for function in self._storing(key, name):
            found.append(self.world.flow(function).stores.get(name, NOTHING))
        joined = join(*found)
        if any(map(is_container, joined)):
            for function in self._filling(key, name):
                joined = join(joined, self.world.flow(function).stores.get(name, NOTHING))
        if without_none(joined) == UNKNOWN and self._told(owner, name):
            return MODULE | (joined & NONE)
        return without_none(joined) | (joined & NONE) if joined else NOTHING

    def likely(self, atom: Atom, name: str) -> tuple[Kind, str]:
        """A member of which nothing is known so far, and what is assumed, if anything is.

        What methods ask ``self.name`` tells that it is a Module. A member of a Module of unknown
        class is that of the program's Modules that have such a member.
        """
        if atom.kind in ("Module", "Object") and "::" in atom.name:
            told = self._told(self.world.program.classes[atom.name], name)
            return (MODULE if told else UNKNOWN), ""
        if atom.kind != "Module" or atom.name not in ("", "torch.nn.Module"):
            return UNKNOWN, ""
        holders = self.world.program.holders.get(name, ())
        owners = [c for c in holders if name in c.stores and self.is_module(c.key)]
        found = join(*(self.member(c.key, name) for c in owners))
        if not found or any(a.kind != "Module" or not a.name for a in found):
            return UNKNOWN, ""
        named = " or ".join(sorted({c.name for c in owners}))
        return found, f"that of {named}: no other Module of the program has it"

    def _told(self, owner: Class, name: str) -> bool:
        """Whether methods of the class ask ``self.name`` for what only Modules have."""
        asked = self._asked.get((id(owner), name), ())
        return any(map(self.world.only_modules_have, asked))

    @cached_property
    def _asked(self) -> dict[tuple[int, str], list[str]]:
        """What of Modules methods ask ``self.name`` for: (class, name) -> names of calls."""
        found: dict[tuple[int, str], list[str]] = {}
        for asked in MODULE_ONLY:
            for _, call, caller in self.world.program.calls.get(asked, ()):
                if caller is None or caller.owner is None or not caller.parameters:
                    continue
                member = call.func.value if isinstance(call.func, ast.Attribute) else None
                if not isinstance(member, ast.Attribute):
                    continue
                if getattr(member.value, "id", "") == caller.parameters[0].arg:
                    known = found.setdefault((id(caller.owner), member.attr), [])
                    known += [asked] if asked not in known else []
        return found

    def inherited(self, key: str, name: str) -> Kind:
        """``super().name``: what the bases give."""
        found: list[Kind] = []
        for base in self.bases(key):
            for atom in base:
                if atom.kind == "class":
                    found.append(self.member(atom.name, name))
                elif atom.kind == "ref":
                    instance = values.instance_of(atom, (), self.world)
                    found.append(values.attribute(instance, name, self.world))
        known = [f for f in found if f and f != UNKNOWN]
        return join(*known[:1]) if known else (UNKNOWN if found else NOTHING)
