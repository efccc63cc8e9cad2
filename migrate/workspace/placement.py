"""In: the Python files of a conversion. Out: where helpers go, and how a file reaches them."""

from __future__ import annotations

import ast
import posixpath
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from migrate.syntax.source import Source

_NAMES = ("torch_helpers", "torch2ms_helpers")
_SIDE_FOLDERS = ("test", "tests", "doc", "docs", "example", "examples", "benchmarks")


@dataclass(frozen=True)
class Placement:
    """``module`` is the path of the module of helpers; ``imports`` says how a file imports from it
    ("from .torch_helpers import"). A file that is not in it holds its helpers itself. ``package``:
    the module lies in the one package that there is."""

    module: str
    imports: Mapping[str, str]
    package: bool = False

    @property
    def home(self) -> str:
        """The folder of the module of helpers: packages that are converted along lie there too."""
        return posixpath.dirname(self.module)

    def before(self, path: str) -> str:
        """What stands before a name beside the module of helpers, in an import of a file."""
        if path in self.imports:
            named = self.imports[path].split()[1]
            return named[: len(named) - len(self._name)]
        return f"{posixpath.basename(self.home)}." if self.home else ""

    def with_along(self, paths: Collection[str]) -> Placement:
        """The same, for the files of packages that are converted along as well."""
        if not self.module:
            return self
        own = {path: f"from {self._dots(path)}{self._name} import" for path in paths}
        return Placement(self.module, {**self.imports, **own}, self.package)

    def with_notebooks(self, paths: Collection[str]) -> Placement:
        """The same, for notebooks that lie where the module of helpers can be imported from.

        A notebook runs in its own folder: its helpers stand in it, unless the module lies there,
        or in a package that does.
        """
        if not self.module:
            return self
        reach = posixpath.dirname(self.home) if self.package else self.home
        before = f"{posixpath.basename(self.home)}." if self.package and self.home else ""
        if self.package and not self.home:
            return self  # the folder itself is the package
        line = f"from {before}{self._name} import"
        own = {path: line for path in paths if posixpath.dirname(path) == reach}
        return Placement(self.module, {**self.imports, **own}, self.package)

    @property
    def _name(self) -> str:
        return posixpath.basename(self.module).removesuffix(".py")

    def _dots(self, path: str) -> str:
        inner = posixpath.dirname(path)[len(self.home) :].strip("/")
        return "." * (inner.count("/") + 2) if self.package else ""


def place(
    sources: Mapping[str, Source], style: str, foreign: Collection[str] = (), root: str = ""
) -> Placement:
    """Decide for a folder.

    Args:
        sources: the files that are converted, by path below the root.
        style: "inline": every file holds its helpers; "module": none does; "": a module, except for
            files that could not import it when run from their own folder.
        foreign: paths of files that the module of helpers must not replace.
        root: the name of the package that the folder itself is, if it is one.
    """
    if style == "inline":
        return Placement("", {})
    scans = {path: _Scan.of(source, root) for path, source in sources.items()}
    packages = _packages(sources, scans)
    if len(packages) == 1:
        return _in_package(packages[0], scans, style, foreign)
    name = _free_name("", foreign)
    tops = {path.split("/")[0].removesuffix(".py") for path in sources}
    reach = {
        path: f"from {name} import"
        for path, scan in scans.items()
        if style == "module" or packages or "/" not in path or scan.absolute & tops
    }
    return Placement(f"{name}.py", reach)


@dataclass(frozen=True)
class _Scan:
    """What the imports of a file say about how it is run."""

    absolute: frozenset[str]
    relative: bool
    torch: bool

    @staticmethod
    def of(source: Source, own: str) -> _Scan:
        roots: set[str] = set()
        relative = False
        for node in _imports(source.tree):
            if isinstance(node, ast.Import):
                roots |= {alias.name.split(".")[0] for alias in node.names}
            elif node.level:
                relative = True
            else:
                roots.add((node.module or "").split(".")[0])
        relative |= own in roots
        roots -= {*sys.stdlib_module_names, own}
        return _Scan(frozenset(roots), relative, b"torch" in source.data)


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports, wherever they stand; no expression holds one."""
    pending: list[ast.AST] = [tree]
    for node in pending:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, field, None)
            pending += below if isinstance(below, list) else ()


def _packages(sources: Mapping[str, Source], scans: Mapping[str, _Scan]) -> list[str]:
    """The outermost packages that use torch; those of tests and examples only if alone."""
    folders = {posixpath.dirname(p) for p in sources if posixpath.basename(p) == "__init__.py"}
    if "" in folders and _is_script_folder(sources, scans):
        folders.discard("")
    tops = sorted(f for f in folders if not any(_below(f, other) for other in folders - {f}))
    used = [f for f in tops if any(s.torch and _below(p, f) for p, s in scans.items())]
    main = [f for f in used if not any(part in _SIDE_FOLDERS for part in f.split("/"))]
    return main or used


def _is_script_folder(sources: Mapping[str, Source], scans: Mapping[str, _Scan]) -> bool:
    """A root with an __init__.py whose files import each other as if it were on sys.path."""
    tops = {path.split("/")[0].removesuffix(".py") for path in sources} - {"__init__"}
    return not any(scan.relative for scan in scans.values()) and any(
        scan.absolute & tops for scan in scans.values()
    )


def _below(path: str, folder: str) -> bool:
    return not folder or path.startswith(folder + "/")


def _in_package(
    package: str, scans: Mapping[str, _Scan], style: str, foreign: Collection[str]
) -> Placement:
    name = _free_name(package, foreign)
    own = posixpath.basename(package)
    parent = posixpath.dirname(package)
    reach: dict[str, str] = {}
    for path, scan in scans.items():
        folder = posixpath.dirname(path)
        runs_as_script = own in scan.absolute and not scan.relative
        if _below(path, package) and not (own and runs_as_script):
            depth = len([part for part in folder[len(package) :].split("/") if part])
            reach[path] = f"from {'.' * (depth + 1)}{name} import"
        elif style == "module" or own in scan.absolute or folder == parent:
            reach[path] = f"from {own}.{name} import"
    return Placement(posixpath.join(package, f"{name}.py"), reach, True)


def _free_name(folder: str, foreign: Collection[str]) -> str:
    free = [n for n in _NAMES if posixpath.join(folder, f"{n}.py") not in foreign]
    return free[0] if free else _NAMES[-1]
