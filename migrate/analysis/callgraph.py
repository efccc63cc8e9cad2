"""Call graph of a program: what a call may run, and its strongly connected components.

Calls are resolved by scope, by class hierarchy and by name. What is called through a variable, an
attribute that holds a function, or a subscript is ``unseen``: it may run every function whose
address is taken somewhere, and every ``forward`` and ``__call__``.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from migrate.analysis.program import Class, File, Function, Program, method_of
from migrate.syntax.trees import LEAVES, children, last_name

CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
_INDIRECT = ("forward", "__call__")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_APART = frozenset((*_DEFINITIONS, ast.ClassDef))


@dataclass(frozen=True)
class Targets:
    """The functions that a call may run; ``constructs``: on a new object; ``unseen``: others too.

    ``bound``: the receiver of the call is the first argument of the functions.
    """

    functions: tuple[Function, ...] = ()
    bound: bool = False
    constructs: bool = False
    unseen: bool = False


_UNSEEN = Targets(unseen=True)
_LIBRARY = Targets()


@dataclass(eq=False)
class CallGraph:
    """Resolves calls; answers are by syntax alone, so that they hold before any kind is known."""

    program: Program
    _names: dict[tuple[str, str], Function | Class | str | None] = field(default_factory=dict)
    _methods: dict[tuple[int, str], Targets] = field(default_factory=dict)
    _linears: dict[int, list[Class]] = field(default_factory=dict)
    _modules: dict[str, set[str]] = field(default_factory=dict)
    _families: dict[int, frozenset[Class]] = field(default_factory=dict)
    _kin: dict[int, frozenset[str]] = field(default_factory=dict)
    _below: dict[int, list[Class]] = field(default_factory=dict)
    _overriding: dict[int, tuple[Function, ...]] = field(default_factory=dict)

    def targets(self, file: File, call: ast.Call, caller: Function | None) -> Targets:
        """Return what a call may run."""
        func = call.func
        if isinstance(func, ast.Name):
            return self._by_name(file, func.id, caller)
        if isinstance(func, ast.Attribute):
            return self._by_attribute(file, func, caller)
        if isinstance(func, ast.Lambda):
            return Targets((file.functions[id(func)],))
        return _UNSEEN

    # -- names ----------------------------------------------------------------------------------

    def _by_name(self, file: File, name: str, caller: Function | None) -> Targets:
        around = caller
        while around is not None:
            if name in around.locals or name in around.inner:
                inner = self._inner.get((id(around), name))
                if inner is None or name in around.stores:
                    return _UNSEEN
                return self._called(inner)
            around = around.parent
        found = self.global_name(file.path, name)
        if found is None:
            return _LIBRARY if hasattr(builtins, name) else _UNSEEN
        return _LIBRARY if isinstance(found, str) else self._called(found)

    def _called(self, item: Function | Class) -> Targets:
        if isinstance(item, Function):
            return Targets((item,), unseen=is_replaced(item))
        starts = [f for n in CONSTRUCTORS for f in self._above(item, n)]
        return Targets(tuple(starts), bound=True, constructs=True)

    def global_name(self, path: str, name: str) -> Function | Class | str | None:
        """Return what a module's name is bound to: a definition, ``""`` for a library; or None."""
        key = (path, name)
        if key not in self._names:
            self._names[key] = None  # an import cycle resolves to nothing
            self._names[key] = self._global(path, name)
        return self._names[key]

    def _global(self, path: str, name: str) -> Function | Class | str | None:
        file = self.program.files[path]
        if name in self._rebound.get(path, ()):
            return None
        if name in file.top:
            return file.top[name]
        for node in file.imports:
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                if bound == name and isinstance(node, ast.Import):
                    return ""
                if isinstance(node, ast.ImportFrom) and name in (bound, alias.name, "*"):
                    target = self.program.linked(path, node.module or "", node.level)
                    if target is None and bound == name:
                        return ""
                    if target is not None and bound == name:
                        return self.global_name(target, alias.name)
        stars = [n for n in file.imports if n.names[0].name == "*"]
        for node in stars:
            target = self.program.linked(path, getattr(node, "module", "") or "", 0)
            level = getattr(node, "level", 0)
            if level:
                target = self.program.find_module(path, getattr(node, "module", "") or "", level)
            found = self.global_name(target, name) if target is not None else None
            if found is not None:
                return found
        return None

    @cached_property
    def _rebound(self) -> dict[str, frozenset[str]]:
        """The names of each module that something beside one definition binds."""
        found: dict[str, set[str]] = {}
        for file in self.program.files.values():
            names = found.setdefault(file.path, set())
            todo: list[ast.AST] = list(file.source.tree.body)
            while todo:
                node = todo.pop()
                if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                    names.add(node.id)
                if type(node) in LEAVES or isinstance(node, (*_DEFINITIONS, ast.ClassDef)):
                    continue
                todo += children(node)
            for function in file.functions.values():
                names |= function.globals
        return {path: frozenset(names) for path, names in found.items()}

    @cached_property
    def _inner(self) -> dict[tuple[int, str], Function | Class]:
        """The functions and classes that are defined inside functions."""
        found: dict[tuple[int, str], Function | Class] = {}
        for file in self.program.files.values():
            for function in file.functions.values():
                named = function.owner is None and not isinstance(function.node, ast.Lambda)
                if named and function.parent is not None:
                    found[id(function.parent), function.name] = function
            for owner in file.classes.values():
                if owner.parent is not None:
                    found[id(owner.parent), owner.name] = owner
        return found

    # -- attributes -----------------------------------------------------------------------------

    def _by_attribute(self, file: File, func: ast.Attribute, caller: Function | None) -> Targets:
        receiver, name = func.value, func.attr
        method = method_of(caller)
        if isinstance(receiver, ast.Name):
            if method is not None and method.parameters:
                assert method.owner is not None
                if receiver.id == method.parameters[0].arg and receiver.id not in method.stores:
                    return self._method(method.owner, name)
            known = (
                None
                if self._is_local(receiver.id, caller)
                else self.global_name(file.path, receiver.id)
            )
            if isinstance(known, Class):  # Base.__init__(self, ...)
                above = [f for c in self._linear(known) if (f := c.methods.get(name))]
                return Targets(tuple(above), unseen=not above)
            if self._is_module(file, receiver.id, caller):
                return self._of_module(file, receiver.id, name)
        if isinstance(receiver, ast.Call) and getattr(receiver.func, "id", "") == "super":
            if method is None or method.owner is None:
                return _UNSEEN
            above = [f for c in self._linear(method.owner)[1:] if (f := c.methods.get(name))]
            return Targets(tuple(above), bound=True)
        return self._method(None, name)

    def _method(self, owner: Class | None, name: str) -> Targets:
        """Return a method of a class's family, or of any class where the receiver is unknown."""
        key = (id(owner), name)
        if key not in self._methods:
            self._methods[key] = self._find_method(owner, name)
        return self._methods[key]

    def _find_method(self, owner: Class | None, name: str) -> Targets:
        holders: Sequence[Class] = self.program.holders.get(name, ())
        if owner is not None:
            family = self._family(owner)
            holders = [c for c in holders if c in family]
        functions = [c.methods[name] for c in holders if name in c.methods]
        functions += self._named.get(name, ()) if owner is None else ()
        unseen = name in self.stored and name not in self._plain_patches
        unseen |= any(map(is_replaced, functions)) or name in self._body_names
        return Targets((*functions, *self.patched.get(name, ())), bound=True, unseen=unseen)

    @cached_property
    def _named(self) -> dict[str, list[Function]]:
        """The functions at the top of modules, which ``module.name(...)`` may mean."""
        found: dict[str, list[Function]] = {}
        for file in self.program.files.values():
            for name, item in file.top.items():
                if isinstance(item, Function):
                    found.setdefault(name, []).append(item)
        return found

    def _is_local(self, name: str, caller: Function | None) -> bool:
        return caller is not None and any(name in around.locals for around in caller.outwards)

    def _is_module(self, file: File, name: str, caller: Function | None) -> bool:
        names = self._modules.get(file.path)
        if names is None:
            nodes = (n for n in file.imports if isinstance(n, ast.Import))
            names = {a.asname or a.name.partition(".")[0] for n in nodes for a in n.names}
            self._modules[file.path] = names
        return name in names and not self._is_local(name, caller)

    def _of_module(self, file: File, module: str, name: str) -> Targets:
        for node in file.imports:
            for alias in node.names:
                if isinstance(node, ast.Import) and (alias.asname or alias.name) == module:
                    target = self.program.linked(file.path, alias.name)
                    if target is None:
                        return _LIBRARY
                    found = self.global_name(target, name)
                    if isinstance(found, (Function, Class)):
                        return self._called(found)
                    return _LIBRARY if isinstance(found, str) else _UNSEEN
        return _LIBRARY

    @cached_property
    def patched(self) -> dict[str, tuple[Function, ...]]:
        """The functions that an assignment puts into an attribute: ``Net.forward = f``."""
        found: dict[str, list[Function]] = {}
        for target, value, file, where in self._attribute_stores():
            for node in _mentioned(value):
                item: object = None
                if isinstance(node, ast.Lambda):
                    item = file.functions[id(node)]
                elif isinstance(node, ast.Name):
                    inner = self._inner.get((id(where), node.id)) if where else None
                    item = inner or self.global_name(file.path, node.id)
                if isinstance(item, Function):
                    found.setdefault(target, []).append(item)
        return {name: tuple(dict.fromkeys(some)) for name, some in found.items()}

    @cached_property
    def stored(self) -> frozenset[str]:
        """The names of attributes that some assignment binds, whatever the object."""
        return frozenset(
            n.attr
            for file in self.program.files.values()
            for n in file.of(ast.Attribute)
            if not isinstance(n.ctx, ast.Load)
        )

    @cached_property
    def _plain_patches(self) -> frozenset[str]:
        """Attributes that only functions of the program are assigned to."""
        other: set[str] = set()
        for name, value, file, where in self._attribute_stores():
            known = isinstance(value, ast.Lambda)
            if isinstance(value, ast.Name):
                inner = self._inner.get((id(where), value.id)) if where else None
                known = isinstance(inner or self.global_name(file.path, value.id), Function)
            if not known:
                other.add(name)
        return frozenset(self.patched.keys() - other)

    @cached_property
    def _body_names(self) -> frozenset[str]:
        """Names that the body of a class binds to a value."""
        found: set[str] = set()
        for owner in self.program.classes.values():
            for item in owner.node.body:
                targets = item.targets if isinstance(item, ast.Assign) else []
                found.update(t.id for t in targets if isinstance(t, ast.Name))
        return frozenset(found)

    def _attribute_stores(self) -> Iterator[tuple[str, ast.expr, File, Function | None]]:
        for file in self.program.files.values():
            for node in file.of(ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        yield target.attr, node.value, file, file.function_at(node)

    # -- classes --------------------------------------------------------------------------------

    def _bases(self, owner: Class) -> list[Class]:
        found = []
        for base in owner.node.bases:
            name = last_name(base)
            known = self.global_name(owner.path, name) if isinstance(base, ast.Name) else None
            if isinstance(known, Class):
                found.append(known)
            elif known is None:
                found += self._classes_named.get(name, [])
        return [b for b in found if b is not owner]

    @cached_property
    def _classes_named(self) -> dict[str, list[Class]]:
        found: dict[str, list[Class]] = {}
        for owner in self.program.classes.values():
            found.setdefault(owner.name, []).append(owner)
        return found

    @cached_property
    def _derived(self) -> dict[int, list[Class]]:
        found: dict[int, list[Class]] = {}
        for owner in self.program.classes.values():
            for base in self._bases(owner):
                found.setdefault(id(base), []).append(owner)
        return found

    def _linear(self, owner: Class) -> list[Class]:
        """Return the class and its bases, nearest first."""
        found = self._linears.get(id(owner))
        if found is None:
            found = self._linears[id(owner)] = [owner]
            for one in found:
                found += [b for b in self._bases(one) if b not in found]
        return found

    def derived(self, owner: Class) -> list[Class]:
        """Return the classes of the program that are derived from one, at any distance."""
        found = self._below.get(id(owner))
        if found is None:
            found = self._below[id(owner)] = []
            todo = list(self._derived.get(id(owner), ()))
            for one in todo:
                if one not in found:
                    found.append(one)
                    todo += self._derived.get(id(one), ())
        return found

    def overriding(self, function: Function) -> tuple[Function, ...]:
        """Return a method and those of derived classes that override it."""
        found = self._overriding.get(id(function))
        if found is None:
            owner, name = function.owner, function.name
            below = self.derived(owner) if owner is not None and name not in CONSTRUCTORS else []
            others = (c.methods.get(name) for c in below)
            found = (function, *(f for f in others if f is not None))
            self._overriding[id(function)] = found
        return found

    def family(self, owner: Class) -> frozenset[Class]:
        """Return a class, its bases and the classes derived from it."""
        found = self._families.get(id(owner))
        if found is None:
            found = frozenset((*self._linear(owner), *self.derived(owner)))
            self._families[id(owner)] = found
        return found

    def kin(self, owner: Class) -> frozenset[str]:
        """Return the keys of the classes of whose methods ``self`` may be of a class."""
        found = self._kin.get(id(owner))
        if found is None:
            found = self._kin[id(owner)] = frozenset(c.key for c in self._family(owner))
        return found

    def _family(self, owner: Class) -> list[Class]:
        """The classes of which ``self`` in a method may be an instance, and all their bases."""
        below = [owner, *self.derived(owner)]
        return list(dict.fromkeys(c for one in below for c in self._linear(one)))

    def _above(self, owner: Class, name: str) -> list[Function]:
        found = (c.methods.get(name) for c in self._linear(owner))
        return [f for f in found if f is not None]

    # -- what is called out of sight ------------------------------------------------------------

    @cached_property
    def indirect(self) -> tuple[Function, ...]:
        """The functions that an unseen call may run: their address is taken somewhere."""
        mentioned: set[str] = set(_INDIRECT)
        for file in self.program.files.values():
            called = {id(c.func) for c in file.of(ast.Call)}
            mentioned |= {n.id for n in file.of(ast.Name) if id(n) not in called}
            mentioned |= {n.attr for n in file.of(ast.Attribute) if id(n) not in called}
        found = []
        for function in self.program.functions.values():
            name = function.name
            library = name.startswith("__") and name not in CONSTRUCTORS
            taken = isinstance(function.node, ast.Lambda) or name in mentioned or library
            if name in CONSTRUCTORS and function.owner is not None:
                taken = function.owner.name in mentioned
            if taken or is_replaced(function):
                found.append(function)
        return tuple(found)


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, those of the functions and classes in it apart."""
    body = function.node.body
    todo: list[ast.AST] = list(body) if isinstance(body, list) else [body]
    while todo:
        node = todo.pop()
        yield node
        kind = type(node)
        if kind in _APART:
            todo += getattr(node, "decorator_list", ())
            arguments = getattr(node, "args", None)
            if arguments is not None:
                todo += [d for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None]
        elif kind not in LEAVES:
            todo += children(node)


def components(edges: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph, those that are pointed at first.

    Tarjan (1972), without recursion.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    held: set[int] = set()
    found: list[list[int]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        held.add(root)
        while work:
            node, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part: list[int] = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        held.discard(part[-1])
                    found.append(part)
            elif child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                held.add(child)
                work.append((child, iter(edges.get(child, ()))))
            elif child in held:
                low[node] = min(low[node], index[child])
    return found


_KEEPING = frozenset(
    "staticmethod classmethod property cached_property abstractmethod contextmanager lru_cache "
    "cache wraps overload no_grad inference_mode enable_grad setter getter deleter script ignore "
    "unused export script_if_tracing total_ordering dataclass final override jit compile "
    "register fixture parametrize autocast custom_fwd custom_bwd".split()
)


def keeps(decorator: ast.expr) -> bool:
    """Return whether a decorator, by its name, leaves a function what it is for its callers."""
    item = decorator.func if isinstance(decorator, ast.Call) else decorator
    last = last_name(item)
    return last in _KEEPING


def is_replaced(function: Function) -> bool:
    """Return whether a decorator may put something else in the place of a function."""
    return not all(map(keeps, getattr(function.node, "decorator_list", ())))


def _mentioned(value: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes of a value: ``MethodType(f, net)`` holds f as well."""
    todo: list[ast.AST] = [value]
    while todo:
        node = todo.pop()
        yield node
        if type(node) not in LEAVES and not isinstance(node, ast.Lambda):
            todo += children(node)
