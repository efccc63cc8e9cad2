"""In: the parsed files of a conversion. Out: their modules, classes, functions, calls, by name."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from migrate.syntax.source import Source
from migrate.syntax.trees import (
    FUNCTIONS,
    LEAVES,
    ByClass,
    FunctionNode,
    children,
    defaults,
    last_name,
    within,
)
from migrate.vendoring.follow import Followed

Node = TypeVar("Node", bound=ast.AST)


_WITH_CONTEXT = ("forward", "backward", "setup_context", "jvp", "vjp")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(eq=False)
class Function:
    """A function, method or lambda. ``key`` is "path::Class.name".

    ``inner`` are the names that its comprehensions bind: no variables of the function.
    """

    key: str
    path: str
    node: FunctionNode
    owner: Class | None = None
    parent: Function | None = None
    locals: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)

    @cached_property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The function and every node in it, contexts and operators apart; found once, since a
        tree does not change after it is indexed."""
        return tuple(within(self.node))

    @cached_property
    def _by_class(self) -> ByClass:
        return ByClass(self.nodes)

    def of(self, *kinds: type[ast.AST]) -> tuple[ast.AST, ...]:
        """Return the function and the nodes in it that are of some classes, in their order."""
        return self._by_class.of(*kinds)

    @cached_property
    def own(self) -> frozenset[int]:
        """The ids of its nodes, those in the functions and lambdas inside of it apart."""
        found = children(self.node)
        for one in found:
            if type(one) not in FUNCTIONS:
                found += children(one)
        return frozenset(map(id, found))

    @cached_property
    def assigned(self) -> dict[str, list[ast.Assign]]:
        """The assignments that have a variable among their targets, by its name."""
        found: dict[str, list[ast.Assign]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for name in {t.id for t in node.targets if isinstance(t, ast.Name)}:
                    found.setdefault(name, []).append(node)
        return found

    @cached_property
    def stores(self) -> dict[str, list[ast.Name]]:
        """The places that bind a variable, by its name."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def returned(self) -> list[ast.expr | None]:
        """The values that it returns itself, not those that functions defined in it do."""
        if not isinstance(self.node.body, list):
            return [self.node.body]
        found: list[ast.expr | None] = []
        waiting: list[ast.AST] = [*reversed(self.node.body)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Return):
                found.append(node.value)
            elif not isinstance(node, (*_DEFINITIONS, ast.expr)):
                waiting += reversed(children(node))
        return found

    @property
    def outwards(self) -> Iterator[Function]:
        """Yield the function, and those that it is defined in, the innermost first."""
        function: Function | None = self
        while function is not None:
            yield function
            function = function.parent

    @property
    def context(self) -> int:
        """Return where ctx stands among its parameters in a torch.autograd.Function, or -1."""
        if self.owner is None or self.name not in _WITH_CONTEXT:
            return -1
        if self.name == "forward" and "setup_context" in self.owner.methods:
            return -1
        return int(self.decorated("classmethod"))

    @cached_property
    def parameters(self) -> list[ast.arg]:
        a = self.node.args
        return [*a.posonlyargs, *a.args]

    @cached_property
    def defaults(self) -> dict[str, ast.expr]:
        """Return the defaults of parameters by their names."""
        return {parameter.arg: value for parameter, value in defaults(self.node.args)}

    @cached_property
    def _decorators(self) -> frozenset[str]:
        items = getattr(self.node, "decorator_list", ())
        return frozenset(last_name(i.func if isinstance(i, ast.Call) else i) for i in items)

    def decorated(self, *names: str) -> bool:
        """Whether a decorator's last name is one of ``names``."""
        return bool(self._decorators) and not self._decorators.isdisjoint(names)


def method_of(function: Function | None) -> Function | None:
    """Return the method that a function is, or is defined in."""
    while function is not None and function.owner is None:
        function = function.parent
    return function


@dataclass(eq=False)
class Class:
    """A class, its methods and what its methods store on ``self``."""

    key: str
    path: str
    node: ast.ClassDef
    parent: Function | None = None
    methods: dict[str, Function] = field(default_factory=dict)
    stores: dict[str, list[Function]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(eq=False)
class File:
    """One parsed file. ``calls`` lists its calls by the last name of the callee."""

    path: str
    module: str
    source: Source
    functions: dict[int, Function] = field(default_factory=dict)
    classes: dict[int, Class] = field(default_factory=dict)
    top: dict[str, Function | Class] = field(default_factory=dict)
    calls: dict[str, list[tuple[ast.Call, Function | None]]] = field(default_factory=dict)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    @property
    def parents(self) -> dict[int, ast.AST]:
        """The parent of every node, by id."""
        return self._walked[1]

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the file, contexts and operators apart."""
        return self._walked[0]

    def around(self, node: ast.AST, *until: type[ast.AST]) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the innermost first, up to one of some classes."""
        outer = self.parents.get(id(node))
        while outer is not None and not isinstance(outer, until):
            yield outer
            outer = self.parents.get(id(outer))

    def holder(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST | None:
        """Return the innermost node of some classes around a node."""
        parents = self.parents
        outer = parents.get(id(node))
        while outer is not None and not isinstance(outer, kinds):
            outer = parents.get(id(outer))
        return outer

    def function_at(self, node: ast.AST) -> Function | None:
        """Return the innermost function or lambda that is a node or holds it."""
        outer: ast.AST | None = node
        while outer is not None and id(outer) not in self.functions:
            outer = self.parents.get(id(outer))
        return self.functions.get(id(outer))

    @cached_property
    def shadowed(self) -> frozenset[int]:
        """The ids of the imported names of the top level that an import behind them binds again,
        before anything runs that could read them."""
        found: set[int] = set()
        bound: dict[str, int] = {}
        for statement in self.source.tree.body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                for alias in statement.names:
                    name = alias.asname or alias.name
                    if name in bound and name != "*":
                        found.add(bound[name])
                    bound[name] = id(alias)
            elif not isinstance(getattr(statement, "value", None), ast.Constant):
                bound = {}
        return frozenset(found)

    def of(self, kind: type[Node]) -> list[Node]:
        """The nodes of one class, in the order of ``nodes``."""
        return self._by_class.get(kind, [])

    @cached_property
    def _by_class(self) -> dict[type[ast.AST], list[Any]]:
        found: dict[type[ast.AST], list[Any]] = {}
        for node in self.nodes:
            found.setdefault(type(node), []).append(node)
        return found

    @cached_property
    def _walked(self) -> tuple[tuple[ast.AST, ...], dict[int, ast.AST]]:
        found: list[ast.AST] = [self.source.tree]
        parents: dict[int, ast.AST] = {}
        for node in found:
            if type(node) not in LEAVES:
                below = children(node)
                found += below
                for child in below:
                    parents[id(child)] = node
        return tuple(found), parents

    @cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """The attributes that are read or written, by their name."""
        found: dict[str, list[ast.Attribute]] = {}
        for node in self.of(ast.Attribute):
            found.setdefault(node.attr, []).append(node)
        return found

    @cached_property
    def bound(self) -> dict[str, list[ast.Name]]:
        """The places that bind or delete a variable, by its name."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.of(ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def loads(self) -> dict[str, list[ast.Name]]:
        """The places that read a variable, by its name."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.of(ast.Name):
            if isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def stores(self) -> dict[str, list[ast.Name]]:
        """The places that bind a variable, by its name."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.of(ast.Name):
            if isinstance(node.ctx, ast.Store):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def imported(self) -> frozenset[str]:
        """The full names of what the file imports: "torch", "torch.nn" for both spellings."""
        found = set()
        for node in self.imports:
            if isinstance(node, ast.Import):
                found |= {a.name for a in node.names}
            elif not node.level:
                found |= {f"{node.module}.{a.name}" for a in node.names}
        return frozenset(found)

    @property
    def is_package(self) -> bool:
        return posixpath.basename(self.path) == "__init__.py"


@dataclass(eq=False)
class Program:
    """All files of a conversion, keyed by their path below the root, with forward slashes.

    ``followed``: which of them are installed packages that are converted along. ``root``: the name
    of the package whose folder is the root of the paths, if it is one.
    """

    files: dict[str, File]
    modules: dict[str, str]
    functions: dict[str, Function]
    classes: dict[str, Class]
    notes: dict[str, Any] = field(default_factory=dict)  # what rules found out about the whole
    followed: Followed = field(default_factory=Followed)
    root: str = ""
    _found: dict[tuple[str, str, int], str | None] = field(default_factory=dict)

    @cached_property
    def calls(self) -> dict[str, list[tuple[File, ast.Call, Function | None]]]:
        """The calls by the last name of the callee, in the order of the files."""
        found: dict[str, list[tuple[File, ast.Call, Function | None]]] = {}
        for file in self.files.values():
            for name, some in file.calls.items():
                found.setdefault(name, []).extend((file, call, where) for call, where in some)
        return found

    def mentions(self, word: bytes) -> bool:
        """Whether the text of any file holds the word."""
        known: dict[bytes, bool] = self.notes.setdefault("words", {})
        if word not in known:
            known[word] = any(word in file.source.data for file in self.files.values())
        return known[word]

    @cached_property
    def holders(self) -> dict[str, tuple[Class, ...]]:
        """The classes that have a method, or store an attribute, of a name."""
        found: dict[str, list[Class]] = {}
        for owner in self.classes.values():
            for name in {**owner.methods, **owner.stores}:
                found.setdefault(name, []).append(owner)
        return {name: tuple(owners) for name, owners in found.items()}

    def find_module(self, importer: str, name: str, level: int = 0) -> str | None:
        """The path of the file that an import means, when it is part of the conversion."""
        asked = importer, name, level
        if asked not in self._found:
            self._found[asked] = self._find_module(*asked)
        return self._found[asked]

    def _find_module(self, importer: str, name: str, level: int) -> str | None:
        if not level and (package := self.followed.package_of(importer)):
            own = name.partition(".")[0] == package
            return self.followed.modules.get(name) if own else None
        if not level:
            beside = posixpath.join(posixpath.dirname(importer), *name.split("."))
            found = self.modules.get(name) or self._file_at(beside)
            # ``import torch`` in a file torch.py means the library, as in a package with one
            hidden = name.partition(".")[0] == "torch" and self._in_package(importer)
            # a package may import from itself by its full name
            itself = found == importer and posixpath.basename(importer) != "__init__.py"
            return None if itself or (hidden and name not in self.modules) else found
        folder = posixpath.dirname(importer)
        for _ in range(level - 1):
            if not folder:
                return None
            folder = posixpath.dirname(folder)
        return self._file_at(posixpath.join(folder, *name.split(".")) if name else folder)

    def linked(self, importer: str, name: str, level: int = 0) -> str | None:
        """The path of the file that an import reaches, one of a package converted along as well."""
        along = None if level else self.followed.modules.get(name)
        return self.find_module(importer, name, level) or along

    def joined(self, path: str) -> tuple[File, ...]:
        """Return a file and all whose code may run in one process with it.

        These are what the scripts that reach it import, themselves included. Code that is not
        seen may import several files that only define something, where imports connect these.
        Two scripts that import one library never meet.
        """
        known: dict[str, tuple[File, ...]] = self.notes.setdefault("joined", {})
        if path not in known:
            above = _reached({path}, self._importers)
            if any(map(self._is_top, above)):
                both = {p: self._imports.get(p, set()) | self._importers[p] for p in self.files}
                above |= set(filter(self._is_top, _reached({path}, both)))
            found = _reached(above, self._imports)
            known[path] = tuple(self.files[one] for one in sorted(found))
        return known[path]

    def _is_top(self, path: str) -> bool:
        """Return whether code that is not seen imports a file, if any code does."""
        return not self._importers[path] and _only_defines(self.files[path])

    def in_sight(self, path: str) -> tuple[File, ...]:
        """Return the files whose objects may meet those of a file.

        Code that is not seen may import several that only define something.
        """
        known: dict[str, tuple[File, ...]] = self.notes.setdefault("in sight", {})
        if path not in known:
            found = {file.path: file for file in self.joined(path)}
            if any(map(_only_defines, found.values())):
                found |= self._defining
            known[path] = tuple(found[one] for one in sorted(found))
        return known[path]

    @cached_property
    def _defining(self) -> dict[str, File]:
        """The files that only define something, and those that may run together with one."""
        paths = [file.path for file in self.files.values() if _only_defines(file)]
        return {file.path: file for path in paths for file in self.joined(path)}

    @cached_property
    def _imports(self) -> dict[str, set[str]]:
        """The files of the program that a file imports."""
        return {path: self._imported(file) & self.files.keys() for path, file in self.files.items()}

    @cached_property
    def _importers(self) -> dict[str, set[str]]:
        """The files of the program that import a file."""
        found: dict[str, set[str]] = {path: set() for path in self.files}
        for path, others in self._imports.items():
            for other in others:
                found[other].add(path)
        return found

    def _imported(self, file: File) -> set[str]:
        """Return the files of the program that one of them imports."""
        found: set[str | None] = set()
        for node in file.imports:
            if isinstance(node, ast.Import):
                found |= {self.linked(file.path, alias.name) for alias in node.names}
                continue
            origin = node.module or ""
            full = [f"{origin}.{alias.name}".lstrip(".") for alias in node.names]
            found |= {self.linked(file.path, name, node.level) for name in (origin, *full)}
        return {path for path in found if path}

    def _in_package(self, path: str) -> bool:
        return posixpath.join(posixpath.dirname(path), "__init__.py") in self.files

    def _file_at(self, stem: str) -> str | None:
        for path in (stem + ".py", posixpath.join(stem, "__init__.py")):
            if path in self.files:
                return path
        return None

    def submodule(self, path: str, name: str) -> str | None:
        """The file of ``name`` inside the package whose ``__init__`` is ``path``."""
        if not self.files[path].is_package:
            return None
        return self._file_at(posixpath.join(posixpath.dirname(path), name))


def _reached(starts: set[str], steps: Mapping[str, set[str]]) -> set[str]:
    """Return what a walk from some nodes of a graph meets, these included."""
    seen, waiting = set(starts), list(starts)
    while waiting:
        new = steps[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def _only_defines(file: File) -> bool:
    """Return whether a file does nothing by itself but define what others import."""
    held = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom,
            ast.Assign, ast.AnnAssign)  # fmt: skip
    body = file.source.tree.body
    return all(
        isinstance(s, held) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        for s in body
    )
