"""In: the parsed files of a conversion. Out: their modules, classes, functions, calls, by name."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from migrate.source import Source
from migrate.syntax import FunctionNode, all_parameters, children


@dataclass(eq=False)
class Function:
    """A function, method or lambda. ``key`` is "path::Class.name"."""

    key: str
    path: str
    node: FunctionNode
    owner: Class | None = None
    parent: Function | None = None
    locals: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @property
    def parameters(self) -> list[ast.arg]:
        a = self.node.args
        return [*a.posonlyargs, *a.args]

    def decorated(self, *names: str) -> bool:
        """Whether a decorator's last name is one of ``names``."""
        for item in getattr(self.node, "decorator_list", ()):
            item = item.func if isinstance(item, ast.Call) else item
            last = item.attr if isinstance(item, ast.Attribute) else getattr(item, "id", "")
            if last in names:
                return True
        return False


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

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """The parent of every node, by id."""
        return {id(child): node for node in self.nodes for child in children(node)}

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the file, contexts and operators apart."""
        found: list[ast.AST] = [self.source.tree]
        for node in found:
            found.extend(children(node))
        return tuple(found)

    @property
    def is_package(self) -> bool:
        return posixpath.basename(self.path) == "__init__.py"


@dataclass(eq=False)
class Program:
    """All files of a conversion, keyed by their path below the root, with forward slashes."""

    files: dict[str, File]
    modules: dict[str, str]
    functions: dict[str, Function]
    classes: dict[str, Class]

    @cached_property
    def calls(self) -> dict[str, list[tuple[File, ast.Call, Function | None]]]:
        """The calls by the last name of the callee, in the order of the files."""
        found: dict[str, list[tuple[File, ast.Call, Function | None]]] = {}
        for file in self.files.values():
            for name, some in file.calls.items():
                found.setdefault(name, []).extend((file, call, where) for call, where in some)
        return found

    def find_module(self, importer: str, name: str, level: int = 0) -> str | None:
        """The path of the file that an import means, when it is part of the conversion."""
        if not level:
            beside = posixpath.join(posixpath.dirname(importer), *name.split("."))
            return self.modules.get(name) or self._file_at(beside)
        folder = posixpath.dirname(importer)
        for _ in range(level - 1):
            if not folder:
                return None
            folder = posixpath.dirname(folder)
        return self._file_at(posixpath.join(folder, *name.split(".")) if name else folder)

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


def build(sources: Mapping[str, Source]) -> Program:
    """Index the files; nothing is decided yet."""
    files: dict[str, File] = {}
    functions: dict[str, Function] = {}
    classes: dict[str, Class] = {}
    modules: dict[str, str] = {}
    for path in sorted(sources):
        module = _module_name(path)
        file = _Indexer(File(path, module, sources[path])).run()
        files[path] = file
        modules[module] = path
        functions.update((f.key, f) for f in file.functions.values())
        classes.update((c.key, c) for c in file.classes.values())
    _add_suffixes(modules)
    return Program(files, modules, functions, classes)


def _module_name(path: str) -> str:
    stem = path[: -len(".py")] if path.endswith(".py") else path
    parts = stem.split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _add_suffixes(modules: dict[str, str]) -> None:
    """``src/pkg/net.py`` is also found as ``pkg.net``: the root of a project is often deeper."""
    for name, path in list(modules.items()):
        parts = name.split(".")
        for start in range(1, min(len(parts) - 1, 3)):
            modules.setdefault(".".join(parts[start:]), path)


class _Indexer:
    """Walks one file once."""

    def __init__(self, file: File) -> None:
        self.file = file

    def run(self) -> File:
        for statement in self.file.source.tree.body:
            self._visit(statement, None, None, "")
        return self.file

    def _visit(
        self, node: ast.AST, function: Function | None, owner: Class | None, prefix: str
    ) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            method_of = None if isinstance(node, ast.Lambda) else owner
            self._function(node, function, method_of, prefix)
            return
        if isinstance(node, ast.ClassDef):
            self._class(node, function, prefix)
            return
        self._note(node, function)
        for child in children(node):
            self._visit(child, function, owner, prefix)

    def _note(self, node: ast.AST, function: Function | None) -> None:
        file = self.file
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                return
            file.names.add(node.id)
            if function is not None:
                function.locals.add(node.id)
        elif isinstance(node, ast.Call):
            callee = node.func
            name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
            file.calls.setdefault(name, []).append((node, function))
        elif isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store) and function is not None:
                self._store(node, function)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            file.imports.append(node)
            if function is not None:
                function.locals.update((a.asname or a.name).split(".")[0] for a in node.names)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            if function is not None:
                function.globals.update(node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            file.names.add(node.name)
            if function is not None:
                function.locals.add(node.name)

    def _store(self, node: ast.Attribute, function: Function) -> None:
        """``self.name = ...`` in a method (or in a function inside it)."""
        method: Function | None = function
        while method is not None and method.owner is None:
            method = method.parent
        if method is None or method.owner is None or not method.parameters:
            return
        if isinstance(node.value, ast.Name) and node.value.id == method.parameters[0].arg:
            stores = method.owner.stores.setdefault(node.attr, [])
            if method not in stores:
                stores.append(method)

    def _function(
        self, node: FunctionNode, parent: Function | None, owner: Class | None, prefix: str
    ) -> None:
        name = getattr(node, "name", f"<lambda {node.lineno}:{node.col_offset}>")
        key = f"{self.file.path}::{prefix}{name}"
        if any(f.key == key for f in (self.file.top.get(name),) if isinstance(f, Function)):
            key += f"@{node.lineno}"
        function = Function(key, self.file.path, node, owner, parent)
        self.file.functions[id(node)] = function
        if not isinstance(node, ast.Lambda):
            self._bind(name, function, parent, owner)
            for decorator in node.decorator_list:
                self._visit(decorator, parent, owner, prefix)
            if node.returns:
                self._visit(node.returns, parent, owner, prefix)
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self._visit(default, parent, owner, prefix)
        for arg in all_parameters(arguments):
            function.locals.add(arg.arg)
            self.file.names.add(arg.arg)
            if arg.annotation:
                self._visit(arg.annotation, parent, owner, prefix)
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        inner = prefix + name + ".<locals>."
        for item in body:
            self._visit(item, function, None, inner)
        function.locals -= function.globals

    def _bind(
        self, name: str, function: Function, parent: Function | None, owner: Class | None
    ) -> None:
        self.file.names.add(name)
        if owner is not None:
            owner.methods[name] = function
        elif parent is not None:
            parent.locals.add(name)
        else:
            self.file.top[name] = function

    def _class(self, node: ast.ClassDef, parent: Function | None, prefix: str) -> None:
        owner = Class(f"{self.file.path}::{prefix}{node.name}", self.file.path, node, parent)
        self.file.classes[id(node)] = owner
        self.file.names.add(node.name)
        if parent is not None:
            parent.locals.add(node.name)
        elif not prefix:
            self.file.top[node.name] = owner
        for child in (*node.decorator_list, *node.bases, *node.keywords):
            self._visit(child, parent, None, prefix)
        for statement in node.body:
            self._visit(statement, parent, owner, prefix + node.name + ".")
