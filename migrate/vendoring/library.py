"""In: names of packages. Out: where they are installed, their licence, modules and definitions.

Nothing is imported: a package that needs torch could not be, where this tool runs alone.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.metadata import Distribution
from pathlib import Path

from migrate.syntax.source import Source, Unreadable, read
from migrate.syntax.trees import all_names, last_name

_UNKNOWN = "unknown"
_LICENCES = ("License-Expression", "License")
_CLASSIFIER = "License :: "


@dataclass(frozen=True)
class Looked:
    """What was looked up of installed packages: the same later tells that they are the same.

    ``packages``: what ``find`` said, by name ("" where it found none); ``files``: the digests of
    files that were read, "+" for one that is only there, "" for one that is not.
    """

    packages: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def holds(self, paths: Sequence[Path]) -> bool:
        """Return whether all this is still so."""
        return all(told(find(name, paths)) == text for name, text in self.packages.items()) and all(
            _state(Path(path), text == "+") == text for path, text in self.files.items()
        )


def told(found: Installed | None) -> str:
    """Return what was found of a package as one text, its licences with their content."""
    if found is None:
        return ""
    files = [f"{path} {_state(path)}" for path in found.licence_files]
    return "\n".join((str(found.folder), found.version, found.licence, *files))


def _state(path: Path, only_there: bool = False) -> str:
    try:
        if only_there or not path.is_file():
            return "+" if path.is_file() else ""
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


@dataclass(frozen=True)
class Installed:
    """A package with Python source: ``folder`` holds its ``__init__.py``."""

    name: str
    folder: Path
    version: str = _UNKNOWN
    licence: str = _UNKNOWN
    licence_files: tuple[Path, ...] = ()


def find(name: str, paths: Sequence[Path] = ()) -> Installed | None:
    """Look for a package in the given folders, then where Python looks; None: it is not there."""
    here = os.getcwd()
    places = [str(path) for path in paths]
    places += [entry for entry in sys.path if entry and os.path.abspath(entry) != here]
    spec = PathFinder.find_spec(name, places)
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    if origin is None or origin.name != "__init__.py":
        return None
    return _described(name, origin.parent, places)


def _described(name: str, folder: Path, places: Sequence[str]) -> Installed:
    listed = Distribution.discover(name=name, path=[str(folder.parent), *places])
    found = next(iter(listed), None)
    if found is None:
        return Installed(name, folder)
    meta = found.metadata
    classifiers = [one for one in meta.get_all("Classifier") or () if one.startswith(_CLASSIFIER)]
    named = classifiers[0].rpartition(" :: ")[2] if classifiers else ""
    written = next((meta[key] for key in _LICENCES if key in meta), named)
    licence = written.strip().split("\n")[0] or _UNKNOWN
    files = [
        Path(str(found.locate_file(one))) for one in found.files or ()
        if one.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE"))
        and ".dist-info" in one.parts[0]
    ]  # fmt: skip
    held = tuple(path for path in files if path.is_file())
    return Installed(name, folder, found.version, licence, held)


Place = tuple[str, str]  # (module, name in it); the name is "" for the module itself


_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom,
             ast.Assign, ast.AnnAssign)  # fmt: skip


@dataclass(frozen=True)
class Index:
    """The top level of a module. ``binders``: name -> (number, statement, where it is from);
    ``stars``: (number, statement, module, whether it stands in a branch); ``speaking``: what
    defines nothing, by the variables it names."""

    binders: dict[str, list[tuple[int, ast.stmt, Place]]]
    stars: list[tuple[int, ast.stmt, str, bool]]
    speaking: dict[str, list[ast.stmt]]


@dataclass(eq=False)
class Library:
    """The source of packages, read when it is asked for. Modules have dotted names."""

    packages: Mapping[str, Installed]
    _paths: dict[str, Path | None] = field(default_factory=dict)
    _sources: dict[str, Source | None] = field(default_factory=dict)
    _indices: dict[str, Index] = field(default_factory=dict)
    _origins: dict[Place, Place | None] = field(default_factory=dict)
    _exports: dict[str, frozenset[str]] = field(default_factory=dict)
    _files: dict[Path, str] = field(default_factory=dict)

    def files(self) -> dict[str, str]:
        """Return what was looked up of files, as ``Looked`` has it."""
        return {str(path): text for path, text in self._files.items()}

    def path(self, module: str) -> Path | None:
        """The file of a module; None: there is none that is Python source."""
        if module not in self._paths:
            self._paths[module] = self._path(module)
        return self._paths[module]

    def _path(self, module: str) -> Path | None:
        root, *inner = module.split(".")
        if root not in self.packages:
            return None
        stem = self.packages[root].folder.joinpath(*inner)
        for path in (stem / "__init__.py", stem.with_name(f"{stem.name}.py")):
            self._files[path] = "+" if path.is_file() else ""
            if path.is_file() and (inner or path.name == "__init__.py"):
                return path
        return None

    def source(self, module: str) -> Source | None:
        """The parsed file of a module; None: there is none, or it is no Python."""
        if module not in self._sources:
            path = self.path(module)
            try:
                data = path.read_bytes() if path else b""
                if path:
                    self._files[path] = sha256(data).hexdigest()
                self._sources[module] = read(module, data) if path else None
            except (OSError, Unreadable):
                self._sources[module] = None
        return self._sources[module]

    def is_package(self, module: str) -> bool:
        path = self.path(module)
        return path is not None and path.name == "__init__.py"

    def imported_from(self, module: str, node: ast.ImportFrom) -> str:
        """The module that ``from ... import`` in a module means."""
        return absolute(module, self.is_package(module), node)

    def origin(self, module: str, name: str) -> Place | None:
        """Where ``module.name`` is defined, through all imports; None: nobody binds it."""
        if (module, name) not in self._origins:
            self._origins[module, name] = (module, name)  # what an import in a circle finds
            self._origins[module, name] = self._origin(module, name)
        return self._origins[module, name]

    def _origin(self, module: str, name: str) -> Place | None:
        if self.source(module) is None:
            return None
        bound = [place for _, place in self.bindings(module, name)]
        if not bound:
            inner = f"{module}.{name}"
            return (inner, "") if self.is_package(module) and self.path(inner) else None
        if any(place == (module, name) for place in bound):
            return module, name  # also by other means than an import: its own code decides
        there, what = bound[-1]
        found = self.origin(there, what) if what else (there, what)
        return found or (module, name)

    def bindings(self, module: str, name: str) -> list[tuple[ast.stmt, Place]]:
        """The top-level statements that bind a name, each with where it takes the name from.

        What is bound in branches is left to them, unless they are for types only: packages that
        load lazily say there where their names come from.
        """
        found = self._index(module)
        bound = list(found.binders.get(name, ()))
        for number, node, base, inside in found.stars:
            if base != module and name in self.exports(base):
                bound.append((number, node, (module, name) if inside else (base, name)))
        return [(node, place) for _, node, place in sorted(bound, key=lambda one: one[0])]

    def speaking(self, module: str, name: str) -> list[ast.stmt]:
        """The top-level statements that define nothing and name a variable."""
        return self._index(module).speaking.get(name, [])

    def _index(self, module: str) -> Index:
        if module not in self._indices:
            found = self._indices[module] = Index({}, [], {})
            source = self.source(module)
            for number, node in enumerate(source.tree.body if source else ()):
                self._enter(found, module, number, node)
        return self._indices[module]

    def _enter(self, index: Index, module: str, number: int, node: ast.stmt) -> None:
        typing = isinstance(node, ast.If) and _is_for_types(node.test)
        if not isinstance(node, _DEFINING) and not typing:
            for name in loaded(node):
                index.speaking.setdefault(name, []).append(node)
        for one in statements([node]):
            inside = one is not node and not typing
            base = self.imported_from(module, one) if isinstance(one, ast.ImportFrom) else ""
            if isinstance(one, ast.ImportFrom) and not inside:
                for alias in one.names:
                    place = self._imported(module, base, alias)
                    if place is not None:
                        entry = index.binders.setdefault(alias.asname or alias.name, [])
                        entry.append((number, node, place))
            else:
                for name in bound_by(one):
                    index.binders.setdefault(name, []).append((number, node, (module, name)))
            if isinstance(one, ast.ImportFrom) and one.names[0].name == "*":
                index.stars.append((number, node, base, inside))

    def _imported(self, module: str, base: str, alias: ast.alias) -> Place | None:
        """Where an import takes a name from; None: from itself, and there is no such module."""
        inner = f"{base}.{alias.name}"
        if alias.name == "*" or (base == module and self.path(inner) is None):
            return None
        if base == module:  # a package imports its own modules
            return inner, ""
        return (base, alias.name) if self.path(base) else (module, alias.asname or alias.name)

    def exports(self, module: str) -> frozenset[str]:
        """What ``from module import *`` binds."""
        if module not in self._exports:
            self._exports[module] = frozenset()  # for stars in a circle
            self._exports[module] = self._exported(module)
        return self._exports[module]

    def _exported(self, module: str) -> frozenset[str]:
        source = self.source(module)
        found: set[str] = set()
        for node in statements(source.tree.body if source else []):
            listed = _listed(node)
            if listed is not None:
                return frozenset(listed)
            found |= bound_by(node)
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                found |= self.exports(self.imported_from(module, node))
        return frozenset(name for name in found if not name.startswith("_"))


def absolute(module: str, is_package: bool, node: ast.ImportFrom) -> str:
    """The dotted name of what an import in a module names."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, node.module] if node.module else parts)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, those in branches included."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            yield from statements(node.body)
            yield from statements(getattr(node, "orelse", []))
            for handler in getattr(node, "handlers", ()):
                yield from statements(handler.body)
            yield from statements(getattr(node, "finalbody", []))


def loaded(node: ast.stmt) -> frozenset[str]:
    """Every variable that a statement names."""
    return frozenset(all_names(node))


def bound_by(node: ast.stmt) -> set[str]:
    """The names that a statement binds by itself; a star is not looked at."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names} - {"*"}
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = [node.target]
    return {name for target in targets for name in all_names(target)}


def _is_for_types(test: ast.expr) -> bool:
    return last_name(test) == "TYPE_CHECKING"


def _listed(node: ast.stmt) -> list[str] | None:
    """``__all__ = ["a", "b"]`` as it is written; None: this is none, or computed."""
    if not isinstance(node, ast.Assign) or "__all__" not in bound_by(node):
        return None
    if not isinstance(node.value, (ast.List, ast.Tuple)):
        return None
    values = [one.value for one in node.value.elts if isinstance(one, ast.Constant)]
    found = [value for value in values if isinstance(value, str)]
    return found if len(found) == len(node.value.elts) else None
