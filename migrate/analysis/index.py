"""In: parsed files. Out: the program: their modules, classes, functions and calls by name."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from migrate.analysis.program import Class, File, Function, Program, method_of
from migrate.syntax.source import Source
from migrate.syntax.trees import (
    LEAVES,
    FunctionNode,
    all_names,
    all_parameters,
    children,
    defaults,
    last_name,
    unquoted,
)
from migrate.vendoring.follow import Followed


def build(
    sources: Mapping[str, Source],
    followed: Followed | None = None,
    root: str = "",
    known: Mapping[str, File] | None = None,
) -> Program:
    """Index the files, those of packages that are converted along included; nothing is decided.

    ``root``: the name of the package whose folder is the root of the paths, if it is one.
    ``known``: files of an earlier program, which are taken over where their source is the same.
    """
    known = known or {}
    followed = followed or Followed()
    files: dict[str, File] = {}
    functions: dict[str, Function] = {}
    classes: dict[str, Class] = {}
    modules: dict[str, str] = {}
    for path in sorted(sources):
        module = _module_name(path)
        file = known.get(path)
        if file is None or file.source is not sources[path]:
            file = _Indexer(File(path, module, sources[path])).run()
        files[path] = file
        if path not in followed.origins:  # they are imported under their own names
            modules[module] = path
        functions.update((f.key, f) for f in file.functions.values())
        classes.update((c.key, c) for c in file.classes.values())
    _add_suffixes(modules)
    if root:
        modules |= {f"{root}.{module}": path for module, path in modules.items()}
        modules[root] = modules["__init__"]
    return Program(files, modules, functions, classes, followed=followed, root=root)


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
        if type(node) in LEAVES:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self._bound(node.id, function)
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            method_of = None if isinstance(node, ast.Lambda) else owner
            self._function(node, function, method_of, prefix)
            return
        if isinstance(node, ast.ClassDef):
            self._class(node, function, prefix)
            return
        self._note(node, function)
        below = children(node)
        if isinstance(node, ast.comprehension):
            self._bound_inside(below.pop(0), function)
        for child in below:
            self._visit(child, function, owner, prefix)

    def _bound_inside(self, target: ast.AST, function: Function | None) -> None:
        """The variables of a comprehension are its own."""
        names = all_names(target)
        self.file.names |= names
        if function is not None:
            function.inner |= names

    def _note(self, node: ast.AST, function: Function | None) -> None:
        file = self.file
        if isinstance(node, ast.Call):
            callee = node.func
            name = last_name(callee)
            file.calls.setdefault(name, []).append((node, function))
        elif isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store) and function is not None:
                self._store(node, function)
        elif isinstance(node, ast.AnnAssign):
            node.annotation = unquoted(file.source, node.annotation)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            file.imports.append(node)
            if function is not None:
                function.locals.update((a.asname or a.name).split(".")[0] for a in node.names)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            if function is not None:
                function.globals.update(node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self._bound(node.name, function)

    def _bound(self, name: str, function: Function | None) -> None:
        self.file.names.add(name)
        if function is not None:
            function.locals.add(name)

    def _store(self, node: ast.Attribute, function: Function) -> None:
        """``self.name = ...`` in a method (or in a function inside it)."""
        method = method_of(function)
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
                node.returns = unquoted(self.file.source, node.returns)
                self._visit(node.returns, parent, owner, prefix)
        arguments = node.args
        for _, default in defaults(arguments):
            self._visit(default, parent, owner, prefix)
        for arg in all_parameters(arguments):
            function.locals.add(arg.arg)
            self.file.names.add(arg.arg)
            if arg.annotation:
                arg.annotation = unquoted(self.file.source, arg.annotation)
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
            if name not in owner.methods or not function.decorated("setter", "deleter"):
                owner.methods[name] = function  # the getter is what a property gives
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
