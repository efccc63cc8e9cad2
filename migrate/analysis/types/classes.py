"""Classes of the project: their bases, torch's among them, and the kinds of their members.

A member is joined from all that may bind it: the body and the methods of the class, of its bases
and of the classes derived from it, and assignments from outside, by whatever name the object has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.program import Class, File, Function, method_of
from migrate.analysis.types import options, values
from migrate.analysis.types.contents import is_plain, with_more
from migrate.analysis.types.flow import Flow
from migrate.analysis.types.kinds import (
    MODULE,
    MODULE_ONLY,
    NONE,
    NOTHING,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    indirect,
    is_all,
    join,
    kind,
    without_none,
)
from migrate.analysis.types.named import EVERY, beginning, bound_to, may_meet, name_pattern
from migrate.analysis.types.units import Unit
from migrate.syntax.trees import children, last_name, targets_of

if TYPE_CHECKING:
    from migrate.analysis.types.inference import Inference

FUNCTIONS = frozenset(("torch.autograd.Function", "torch.autograd.function.Function"))
_REGISTERING = ("register_buffer", "register_parameter", "add_module", "register_module", "setattr")
_REGISTERING_TENSORS = ("register_buffer", "register_parameter")
_TENSORS = ("Parameter", "Buffer")
_WITHOUT_MEMBERS = ("object", "ABC", "Generic", "Protocol")
_ANYTHING = ("", "getattr", "object", options.NAMESPACE)  # names of objects of any class
_ANY = "*"  # the name of an attribute that is not written out
_MADE = "+"  # the same, of what is registered by a method: read where such a name is looked up


@dataclass(frozen=True)
class Stored:
    """An assignment to an attribute of something that is not ``self``; ``pattern``: of its name."""

    holder: Kind
    value: Kind
    pattern: str = ""


@dataclass(eq=False)
class Classes:
    """Answers about the classes of the project, each computed as a cell of the fixpoint."""

    world: Inference
    _outside: dict[str, dict[Unit, tuple[Stored, ...]]] = field(default_factory=dict)
    _names: dict[Unit, frozenset[str]] = field(default_factory=dict)
    _bodies: dict[int, frozenset[str]] = field(default_factory=dict)
    _registered: dict[int, frozenset[str]] = field(default_factory=dict)

    # -- bases ----------------------------------------------------------------------------------

    def bases(self, key: str) -> tuple[Kind, ...]:
        """Return the kinds of the base classes as written; () for a class of another library."""
        owner = self.world.program.classes.get(key)
        if owner is None:
            return ()
        return tuple(self._base(owner, b) for b in owner.node.bases)

    def _base(self, owner: Class, node: ast.expr) -> Kind:
        known = self.world.node_kind(self.world.index.around(owner), node)
        if known is None:  # read while the module is still being walked
            known = Flow(self.world, owner.path, owner.parent).kind(node)
        return known

    def torch_bases(self, key: str) -> tuple[str, ...]:
        """Return the torch classes that a class of the project is derived from, nearest first.

        A mixin is derived from none, but all its objects are Modules. A class of another library
        is derived from none.
        """
        if key not in self.world.program.classes:
            return ()
        return self._written_bases(key) or self._mixed_into(self.world.program.classes[key])

    def _written_bases(self, key: str) -> tuple[str, ...]:
        found: list[str] = []
        seen, todo = {key}, [key]
        while todo:
            for base in self.world.bases(todo.pop(0)):
                for atom in base:
                    if atom.kind == "ref" and atom.name not in found:
                        found.append(atom.name)
                    if atom.kind == "class" and atom.name not in seen:
                        seen.add(atom.name)
                        todo.append(atom.name)
        return tuple(found)

    def _mixed_into(self, owner: Class) -> tuple[str, ...]:
        """Return torch.nn.Module for a class of which all objects that can exist are Modules.

        It is not instantiated, it has no foreign base that would bring members of its own, and so
        it is for each class derived from it that is no Module.
        """
        derived = self.world.summaries.graph.derived
        todo = [owner]
        for one in todo:
            if one is not owner and self._are_modules(self._written_bases(one.key)):
                continue
            below = derived(one)
            if not below or one.name in self._called or not self._is_plain(one):
                return ()
            todo += [c for c in below if c not in todo]
        return ("torch.nn.Module",)

    def _is_plain(self, owner: Class) -> bool:
        """Return whether all bases are classes of the project or have no members of their own."""
        todo = [owner]
        for one in todo:  # what is imported may go round in circles
            for node, base in zip(one.node.bases, self.bases(one.key), strict=True):
                last = node.value if isinstance(node, ast.Subscript) else node
                if last_name(last) in _WITHOUT_MEMBERS:
                    continue
                classes = [self.world.class_of(a.name) for a in base if a.kind == "class"]
                found = [c for c in classes if c is not None]
                if not base or len(found) != len(base):
                    return False
                todo += [c for c in found if c not in todo]
        return True

    @cached_property
    def _called(self) -> frozenset[str]:
        """The last names of all that the program calls."""
        return frozenset(n for file in self.world.program.files.values() for n in file.calls)

    def _are_modules(self, bases: Iterable[str]) -> bool:
        return any(
            name.startswith(("torch.nn.", "einops.layers", "torchvision.ops"))
            and self.world.table.kind(name) in ("class", "")
            for name in bases
        )

    def is_module(self, key: str) -> bool:
        """Return whether a class of the project is a torch Module."""
        return self._are_modules(self.world.torch_bases(key))

    def is_function(self, key: str) -> bool:
        """Return whether a class of the project is a torch.autograd.Function."""
        return not FUNCTIONS.isdisjoint(self.world.torch_bases(key))

    # -- members --------------------------------------------------------------------------------

    def member(self, key: str, name: str) -> Kind:
        """Return ``instance.name`` for an instance of a class, or of one derived from it."""
        owner = self.world.program.classes[key]
        method = owner.methods.get(name)
        below = self.world.summaries.graph.derived(owner)
        above: tuple[Class, ...] = self.world._ask(("above", key), tuple)
        stored = [self._stored(c, name) for c in (*below, *above)]
        stored += self._put_outside(owner, name)
        if method is not None:
            own = self._method(method)
            return join(own, self._put_by_any_name(owner, name, own), *stored)
        own = self._stored(owner, name)
        found = own or self.world.inherited(key, name)
        if not found:
            overriding = [m for c in below if (m := c.methods.get(name)) is not None]
            found = join(*map(self._method, overriding))
        loose = self._put_by_any_name(owner, name, join(found, *stored))
        if not own and found == UNKNOWN and (loose or any(stored)) and self._is_whole(above, owner):
            found = NOTHING  # torch's base has no such attribute
        if not own and any("__getattr__" in c.methods for c in (owner, *above)):
            found = join(found, UNKNOWN)  # what nothing but a store from outside binds
        joined = join(found, loose, *stored)
        if joined >= UNKNOWN:
            declared = self._declared((owner, *above), name)
            if declared != UNKNOWN:
                return join(joined - UNKNOWN, declared)
        if not is_plain(joined):
            kin = self.world.summaries.graph.kin(owner)
            joined = with_more(joined, self.world.put(f"@{name}", kin))
        if without_none(joined) == UNKNOWN and self._told(owner, name):
            return MODULE | (joined & NONE)
        return joined

    def _declared(self, owners: tuple[Class, ...], name: str) -> Kind:
        """What an annotation in the class or its bases says of an attribute."""
        for owner in owners:
            found = self.world.index.declared_member(owner.key, name)
            if found is not None:
                return values.resolved(self.world.node_kind(*found) or UNKNOWN, self.world)
        return UNKNOWN

    def _is_whole(self, above: tuple[Class, ...], owner: Class) -> bool:
        """Whether all bases of a class are of the project or of torch."""
        bases = (b for c in (owner, *above) for b in self.world.bases(c.key))
        return all(a.kind in ("class", "ref") for b in bases for a in b)

    def _method(self, method: Function) -> Kind:
        if method.decorated("property", "cached_property"):
            return self.world.returns_any(method)
        return kind("method", method.key)

    def above(self, key: str) -> tuple[Class, ...]:
        """Return the bases of a class that are of the project."""
        owner = self.world.program.classes[key]
        found: list[Class] = []
        todo = [owner.key]
        while todo:
            for base in self.world.bases(todo.pop(0)):
                for atom in base:
                    known = self.world.class_of(atom.name) if atom.kind == "class" else None
                    if known is not None and known is not owner and known not in found:
                        found.append(known)
                        todo.append(known.key)
        return tuple(found)

    def _stored(self, owner: Class, name: str) -> Kind:
        if not self._storing(owner, name) and name not in self._bound(owner):
            return NOTHING
        return self.world.kind_of("stored", owner.key, name)

    def _bound(self, owner: Class) -> frozenset[str]:
        """The names that the body of a class may bind."""
        found = self._bodies.get(id(owner))
        if found is None:
            found = self._bodies[id(owner)] = frozenset(_bound_in(owner.node.body))
        return found

    def stored(self, key: str, name: str) -> Kind:
        """Return what the body and the methods of one class bind a member to."""
        owner = self.world.program.classes[key]
        found = [self.world.body(owner).get(name, NOTHING)] if name not in owner.methods else []
        found += [self._stores(f, name) for f in self._storing(owner, name)]
        joined = join(*found)
        return without_none(joined) | (joined & NONE) if joined else NOTHING

    def _stores(self, method: Function, name: str) -> Kind:
        """What a method, and the functions inside it, store under a name."""
        inside = (method, *self.world.index.nested(method))
        return join(*(self.world.found(f).stores.get(name, NOTHING) for f in inside))

    def _storing(self, owner: Class, name: str) -> Iterable[Function]:
        """The methods that store a member; some register it by its name."""
        storing = owner.stores.get(name, ())
        return dict.fromkeys((*storing, *self._registering.get(id(owner), ())))

    @cached_property
    def _registering(self) -> dict[int, list[Function]]:
        """The methods of each class that store what is written as a text."""
        found: dict[int, list[Function]] = {}
        for name in _REGISTERING:
            for _, _, caller in self.world.program.calls.get(name, ()):
                method = method_of(caller)
                if method is not None and method.owner is not None:
                    methods = found.setdefault(id(method.owner), [])
                    if method not in methods:
                        methods.append(method)
        return found

    def inherited(self, key: str, name: str) -> Kind:
        """Return ``super().name``: what the bases give."""
        found: list[Kind] = []
        for base in self.world.bases(key):
            for atom in base:
                if atom.kind == "class":
                    found.append(self._exactly(atom.name, name))
                elif atom.kind == "ref":
                    instance = values.instance_of(atom, (), self.world)
                    found.append(values.attribute(instance, name, self.world))
        known = [f for f in found if f and f != UNKNOWN]
        return join(*known[:1]) if known else (UNKNOWN if UNKNOWN in found else NOTHING)

    def _exactly(self, key: str, name: str) -> Kind:
        """What a class or its bases define, whatever derived classes do."""
        owner = self.world.program.classes[key]
        method = owner.methods.get(name)
        if method is not None:
            return self._method(method)
        return self._stored(owner, name) or self.world.inherited(key, name)

    # -- stores from outside --------------------------------------------------------------------

    def finish(self, unit: Unit) -> None:
        """Replace what a unit stores into other objects by what its walk has found."""
        kinds = self.world.kinds
        found: dict[str, list[Stored]] = {}
        method = None if isinstance(unit, str) else method_of(unit)
        own = method.parameters[0].arg if method is not None and method.parameters else ""
        for node in self.world.index.stores(unit):
            if isinstance(node.value, ast.Name) and node.value.id == own:
                continue
            holder = kinds.get(id(node.value), UNKNOWN)
            value = indirect(kinds.get(id(node), UNKNOWN))
            found.setdefault(node.attr, []).append(Stored(_names(holder), value))
        for call in self.world.index.calls(unit):
            if getattr(call.func, "id", "") == "setattr" and len(call.args) == 3:
                target, text, given = call.args
                holder = _names(kinds.get(id(target), UNKNOWN))
                value = indirect(kinds.get(id(given), UNKNOWN))
                if isinstance(text, ast.Constant):
                    found.setdefault(str(text.value), []).append(Stored(holder, value))
                else:
                    pattern = self._texts(unit, text)
                    found.setdefault(_ANY, []).append(Stored(holder, value, pattern))
            elif _registers(call):
                assert isinstance(call.func, ast.Attribute)
                pattern = name_pattern(call.args[0])
                holder = _names(kinds.get(id(call.func.value), UNKNOWN))
                is_tensor = call.func.attr in _REGISTERING_TENSORS
                part = call.args[1] if len(call.args) > 1 and not is_tensor else None
                value = indirect(kinds.get(id(part), UNKNOWN)) if part is not None else MODULE
                made = Stored(holder, TENSOR if is_tensor else value, pattern)
                found.setdefault(_MADE, []).append(made)
                if is_tensor and pattern != EVERY:
                    found.setdefault(_ANY, []).append(made)
        before = self._names.get(unit, frozenset())
        self._names[unit] = frozenset(found)
        for name in (*found, *(before - found.keys())):
            new = tuple(dict.fromkeys(found.get(name, ())))
            known = self._outside.setdefault(name, {})
            if known.get(unit, ()) != new:
                known[unit] = new
                self.world.invalidate("outside", name)

    def _texts(self, unit: Unit, name: ast.expr, depth: int = 4) -> str:
        """Return a pattern of the texts that a name may be, by all that binds it."""
        given: Sequence[ast.expr | None] = ()
        if isinstance(name, ast.Name) and not isinstance(unit, str):
            given = list(bound_to(unit, name.id))
        elif isinstance(name, ast.Attribute):
            given = self._constants(name.attr)
        elif isinstance(name, ast.Call) and getattr(name.func, "id", "") == "getattr":
            asked = getattr(name.args[1], "value", "") if len(name.args) > 1 else ""
            given = [*self._constants(str(asked)), *name.args[2:]]
        elif isinstance(name, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.FormattedValue) else p for p in name.values)
            texts = [self._texts(unit, part, depth - 1) for part in parts]
            return "".join(f"(?:{text})" if "|" in text else text for text in texts)
        else:
            return name_pattern(name)
        if not given or depth == 0 or None in given:
            return EVERY
        return "|".join(sorted({self._texts(unit, g, depth - 1) for g in given if g is not None}))

    def _constants(self, name: str) -> Sequence[ast.expr | None]:
        """Return the constants that class bodies and stores of constants bind to a name.

        ``x.name = y.name`` adds nothing; None stands for any other store.
        """
        if name in self._set_by_name:
            return (None,)
        given: list[ast.expr | None] = []
        if name in self.world.index.stored_attributes:
            files = self.world.program.files.values()
            given = [value for file in files for value in _stores_of(file, name)]
        return [v for v in given if getattr(v, "attr", "") != name] + [
            node.value
            for owner in self.world.program.classes.values()
            for node in owner.node.body
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
            if any(getattr(t, "id", "") == name for t in targets_of(node))
        ]

    def renewed(self, gone: Collection[Unit]) -> Classes:
        """Return the same for a program without some units."""
        for unit in gone:
            for name in self._names.pop(unit, ()):
                self._outside[name].pop(unit, None)
        return Classes(self.world, self._outside, self._names)

    def outside(self, name: str) -> tuple[Stored, ...]:
        """Return all stores of an attribute into something that is not ``self``."""
        return tuple(s for some in self._outside.get(name, {}).values() for s in some)

    def _put_outside(self, owner: Class, name: str) -> list[Kind]:
        """What is stored from outside into instances of a class, or into the class."""
        found = []
        if name in self.world.index.stored_attributes or name in self._set_by_name:
            for stored in self._read_outside(name):
                if any(self._may_hold(a, owner) for a in stored.holder):
                    found.append(stored.value)
        return found

    def _put_by_any_name(self, owner: Class, name: str, known: Kind) -> Kind:
        """What is stored under a name that is not written out; ``known``: all other stores.

        What is registered as a Parameter or buffer can only be bound to a Tensor or None: torch
        raises otherwise, but for a Module, and a Cell raises for that one too. What is a Tensor
        as far as it is known is taken to hide no method that is called.
        """
        if not self._sets_any or name.startswith("__"):  # those are looked up in the class
            return NOTHING
        some: tuple[Stored, ...] = self.world._ask(("set by any name", owner.key), tuple)
        found = join(*(s.value for s in some if re.fullmatch(s.pattern, name)))
        if found != UNKNOWN and is_all(known, "method") and is_all(found - UNKNOWN, "Tensor"):
            return found - UNKNOWN
        if found and is_all(known, "Tensor") and self._registers(owner, name):
            return frozenset(a for a in found if a.kind in ("Tensor", "None"))
        return found

    def _registers(self, owner: Class, name: str) -> bool:
        """Whether a class or a base makes a Parameter or buffer of an attribute."""
        above: tuple[Class, ...] = self.world._ask(("above", owner.key), tuple)
        return any(name in self._registered_by(c) for c in (owner, *above))

    def _registered_by(self, owner: Class) -> frozenset[str]:
        found = self._registered.get(id(owner))
        if found is None:
            nodes = [n for m in owner.methods.values() for n in m.nodes]
            stores = [n for n in nodes if isinstance(n, (ast.Assign, ast.AnnAssign))]
            made = [s for s in stores if last_name(getattr(s.value, "func", s)) in _TENSORS]
            names = {t.attr for s in made for t in targets_of(s) if isinstance(t, ast.Attribute)}
            for call in (n for n in nodes if isinstance(n, ast.Call) and n.args):
                if last_name(call.func) in _REGISTERING_TENSORS:
                    names.add(str(getattr(call.args[0], "value", "")))
            found = self._registered[id(owner)] = frozenset(names)
        return found

    def set_by_any_name(self, key: str) -> tuple[Stored, ...]:
        """Return what ``setattr`` with a name that is not written out puts into instances."""
        some = self._read_outside(_ANY)
        family = {c.key for c in self.world.summaries.graph.family(self.world.program.classes[key])}
        return tuple(s for s in some if any(a.name in family for a in s.holder))

    def named_by(self, key: str, pattern: str) -> tuple[tuple[str, ...], Kind]:
        """Return the members of an instance that fit a pattern of names, and what else is stored
        under such a name; unknown where more than the project tells may have one."""
        owner = self.world.program.classes[key]
        above: tuple[Class, ...] = self.world._ask(("above", key), tuple)
        family = (owner, *self.world.summaries.graph.derived(owner), *above)
        bases = self.world.torch_bases(key)
        torch_names = [n for b in bases for n in self.world.table.torch.members(b)]
        if (
            not beginning(pattern)
            or not self._is_whole(above, owner)
            or not set(bases) <= {"torch.nn.Module"}
            or any("__getattr__" in c.methods for c in family)
            or any(re.fullmatch(pattern, n) for n in torch_names)
        ):
            return (), UNKNOWN
        bound = {n for c in family for n in (*c.methods, *c.stores, *self.world.body(c))}
        for method in (m for c in family for m in self._registering.get(id(c), ())):
            inside = (method, *self.world.index.nested(method))
            bound.update(n for f in inside for n in self.world.found(f).stores)
        outside = (self.world.index.stored_attributes | self._set_by_name) - bound
        fitting = {n for n in bound if re.fullmatch(pattern, n)}
        fitting |= {n for n in outside if re.fullmatch(pattern, n) and self._put_outside(owner, n)}
        keys = {c.key for c in family}
        stored = [s for n in (_ANY, _MADE) for s in self._read_outside(n)]
        stored = [s for s in stored if any(a.name in keys for a in s.holder)]
        loose = [s.value for s in stored if may_meet(s.pattern, pattern)]
        return tuple(sorted(fitting)), join(*loose)

    def _read_outside(self, name: str) -> tuple[Stored, ...]:
        return self.world._ask(("outside", name), tuple)

    @cached_property
    def _set_by_name(self) -> frozenset[str]:
        calls = (c for _, c, _ in self.world.program.calls.get("setattr", ()) if len(c.args) == 3)
        texts = (c.args[1] for c in calls)
        return frozenset(str(t.value) for t in texts if isinstance(t, ast.Constant))

    @cached_property
    def _sets_any(self) -> bool:
        calls = self.world.program.calls
        by_text = any(
            len(c.args) == 3 and not isinstance(c.args[1], ast.Constant)
            for _, c, _ in calls.get("setattr", ())
        )
        made = (c for n in _REGISTERING_TENSORS for _, c, _ in calls.get(n, ()))
        return by_text or any(map(_registers, made))

    def put_on_classes(self, name: str) -> Kind:
        """Return what an attribute is bound to on classes, or their objects, that are known."""
        found = self._read_outside(name)
        return join(*(s.value for s in found if any("::" in a.name for a in s.holder)))

    def put_into_module(self, path: str, name: str) -> Kind:
        """Return what ``module.name = ...`` in other files binds a global to."""
        found = self._read_outside(name)
        project = kind("project", path)
        return join(*(s.value for s in found if project <= s.holder))

    def _may_hold(self, atom: Atom, owner: Class) -> bool:
        """Whether what an attribute is stored into may be an instance of a class, or the class."""
        if atom.kind in ("Module", "Object", "class") and "::" in atom.name:
            return self._is_kin(atom, owner)
        if atom.kind == "Module":
            general = atom.name in ("", "torch.nn.Module")
            return self.world.is_module(owner.key) and (
                general or atom.name in self.world.torch_bases(owner.key)
            )
        return atom.kind in ("unknown", "instance") and atom.name in _ANYTHING

    def _is_kin(self, atom: Atom, owner: Class) -> bool:
        other = self.world.class_of(atom.name)
        return other is owner or (
            other is not None and other in self.world.summaries.graph.family(owner)
        )

    # -- Modules --------------------------------------------------------------------------------

    def likely(self, atom: Atom, name: str) -> tuple[Kind, str]:
        """Return an unknown member, and the assumption that is made of it, if any.

        Methods that are called on ``self.name`` show that it is a Module. A member of a Module of
        unknown class is that of the program's Modules that have such a member.
        """
        if atom.kind in ("Module", "Object") and "::" in atom.name:
            told = self._told(self.world.program.classes[atom.name], name)
            return (MODULE if told else UNKNOWN), ""
        if atom.kind != "Module" or atom.name not in ("", "torch.nn.Module"):
            return UNKNOWN, ""
        owners = [
            c for c in self.world.holders(name) if name in c.stores and self.world.is_module(c.key)
        ]
        found = join(*(self.world.member(c.key, name) for c in owners))
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


def _bound_in(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names in the body of a class, those in functions and classes inside of it apart."""
    todo: list[ast.AST] = [*body]
    for node in todo:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.ClassDef):
            yield node.name
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            todo += children(node)


def _names(holder: Kind) -> Kind:
    """The alternatives by kind and name alone: what they hold makes no difference to a store."""
    return frozenset(Atom(a.kind, a.name) for a in holder)


def _stores_of(file: File, name: str) -> Iterator[ast.expr | None]:
    """Yield what a file stores under an attribute; None for what no assignment writes out."""
    for node in file.of(ast.Attribute):
        if node.attr != name or isinstance(node.ctx, ast.Load):
            continue
        place: ast.AST = node
        item = file.parents[id(node)]
        among = item.elts if isinstance(item, ast.Tuple) else []
        if among:
            place, item = item, file.parents[id(item)]
        value = item.value if isinstance(item, ast.Assign) and place in item.targets else None
        if value is not None and among:
            values = value.elts if isinstance(value, ast.Tuple) else []
            value = values[among.index(node)] if len(values) == len(among) else None
        yield value


def _registers(call: ast.Call) -> bool:
    """``m.register_buffer(f"mask_{i}", x)``: the name is not written out."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    text = call.args[0] if call.args else None
    return name in _REGISTERING and text is not None and not isinstance(text, ast.Constant)
