"""In: the place of a source file. Out: the file imported as a module, and where objects arise."""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import importlib
import importlib.abc
import importlib.util
import inspect
import linecache
import operator
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from migrate.parity import apart

PLACE = "_torch2ms_place"
ARGUMENTS = "_torch2ms_arguments"  # what an instance was made with, by name
_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


@dataclass(frozen=True)
class Tree:
    """Where the files of one side lie: ``root`` is a folder; ``package`` names it as a package.

    ``package`` is empty where root holds no ``__init__.py``, and dotted where root is part of a
    larger package. Both sides use the source's name, so that absolute imports of the package by
    its own name keep working in the output.
    """

    root: Path
    package: str = ""


def load_anyhow(tree: Tree, relative: str) -> tuple[ModuleType, str]:
    """`load`; where the code of a package's ``__init__.py`` fails, with what it got to.

    Answers the module and, in the second case, the reasons as text.
    """
    try:
        return load(tree, relative), ""
    except Exception as error:  # whatever the package's code raises
        finder = Lenient(tree.root)
        sys.meta_path.insert(0, finder)
        try:
            module = load(tree, relative)
        except Exception:
            raise error from None  # the first failure is the one that a user sees
        finally:
            sys.meta_path.remove(finder)
        if not finder.notes:
            raise
        return module, "; ".join(finder.notes)


class Lenient(importlib.abc.MetaPathFinder):
    """Lets packages below a folder be imported although their own code fails half way."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notes: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None or not spec.submodule_search_locations:
            return None
        if not _is_below(spec.origin or "", self.root):
            return None
        spec.loader = _LenientLoader(fullname, spec.origin or "", self.notes)
        return spec


class _LenientLoader(SourceFileLoader):
    """Runs a package's ``__init__.py`` statement by statement and notes those that fail."""

    def __init__(self, name: str, path: str, notes: list[str]) -> None:
        super().__init__(name, path)
        self.notes = notes

    def exec_module(self, module: ModuleType) -> None:
        flags = 0
        for node in ast.parse(self.get_data(self.path), self.path).body:
            part = ast.Module([node], [])
            code = compile(part, self.path, "exec", flags, dont_inherit=True)
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                flags |= code.co_flags & _FUTURES
            try:
                exec(code, module.__dict__)  # as an import would
            except Exception as error:  # what comes after it may serve all the same
                self.notes.append(f"{self.name}: {type(error).__name__}: {error}")


def load(tree: Tree, relative: str) -> ModuleType:
    """Import a file through its package; raises whatever its code raises at import."""
    with apart.theirs((tree.root, (tree.root / relative).parent), tree.package):
        return _load(tree, relative)


def _load(tree: Tree, relative: str) -> ModuleType:
    forget(tree.root)
    importlib.invalidate_caches()
    linecache.clearcache()
    path = tree.root / relative
    for listed in (str(path.parent), str(tree.root)):
        if listed in sys.path:
            sys.path.remove(listed)
    if not (path.parent / "__init__.py").exists():
        sys.path.insert(0, str(path.parent))
    if tree.package:
        _open_package(tree)
    elif tree.root != path.parent or (path.parent / "__init__.py").exists():
        sys.path.insert(0, str(tree.root))
    name = _module_name(tree, path)
    if "." in name or path.name == "__init__.py":
        return importlib.import_module(name)
    return _load_alone(name, path)


def open_module(name: str, folders: Sequence[str]) -> tuple[ModuleType, Path]:
    """Import a module by its dotted name, looked for in folders first; and where its tree begins.

    Raises whatever its code raises at import.
    """
    for folder in reversed(folders):
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    with apart.theirs(map(Path, folders), name):
        module = importlib.import_module(name)
    file = Path(getattr(module, "__file__", None) or Path.cwd() / "x.py").resolve()
    parts = len(name.split(".")) - (file.name != "__init__.py")
    return module, file.parents[parts]


def made(module: ModuleType, build: str, kind: Any) -> Any:
    """Return the model that an expression builds, or makes without arguments, in a module."""
    value = eval(build, vars(module))  # the user's own expression
    if isinstance(value, kind):
        return copy.deepcopy(value) if build.isidentifier() else value
    if callable(value):
        value = value()
    if not isinstance(value, kind):
        raise TypeError(f"{build} gives {type(value).__name__}, not a {kind.__name__}")
    return value


def forget(root: Path) -> None:
    """Drop modules and search paths of other trees, so that equal names do not meet."""
    gone = {
        name for name, module in sys.modules.items() if name != "__main__"
        and (getattr(module, "_torch2ms_loaded", False)
             or _is_below(getattr(module, "__file__", None) or "", root))
    }  # fmt: skip
    for name, module in sorted(sys.modules.items(), key=lambda item: item[0]):  # parents first
        if name in gone or _is_orphan(name, module):
            del sys.modules[name]
    for name in [n for n in sys.path if _is_below(n, root)]:
        sys.path.remove(name)


def _is_orphan(name: str, module: ModuleType) -> bool:
    """A folder without __init__.py whose package failed at import: Python drops that one only."""
    package = name.rpartition(".")[0]
    bare = hasattr(module, "__path__") and not getattr(module, "__file__", None)
    return bare and bool(package) and package not in sys.modules


def _is_below(file: str, root: Path) -> bool:
    return bool(file) and Path(file).is_relative_to(root) and "site-packages" not in file


def _module_name(tree: Tree, path: Path) -> str:
    parts: list[str] = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while folder != tree.root and (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if not tree.package:
        if folder != tree.root and len(parts) > 1 and str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        return ".".join(parts)
    inner = [*folder.relative_to(tree.root).parts, *parts]
    return ".".join([tree.package, *inner])


def _open_package(tree: Tree) -> None:
    """Register the root (and what it is part of) as a package, its parent folder stays unlisted.

    Outer packages that do not exist on this side are empty.
    """
    parts = tree.package.split(".")
    for number in range(1, len(parts) + 1):
        name = ".".join(parts[:number])
        levels = len(parts) - number
        folder = tree.root.parents[levels - 1] if levels else tree.root
        if (folder / "__init__.py").exists():
            if name not in sys.modules:
                _load_alone(name, folder / "__init__.py", [str(folder)])
            continue
        outer = ModuleType(name)
        outer.__dict__.update(__path__=[], _torch2ms_loaded=True)
        sys.modules[name] = outer


def _load_alone(name: str, path: Path, search: Sequence[str] | None = None) -> ModuleType:
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", "") != str(path) and search is None:
        name = f"{name}_converted"
    lenient = next((f for f in sys.meta_path if isinstance(f, Lenient)), None)
    loader = _LenientLoader(name, str(path), lenient.notes) if lenient and search else None
    spec = importlib.util.spec_from_file_location(
        name, path, loader=loader, submodule_search_locations=list(search) if search else None
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported as a Python module")
    module = importlib.util.module_from_spec(spec)
    module.__dict__["_torch2ms_loaded"] = True
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def track(owner: Any, arguments: bool = False) -> None:
    """Make every instance of ``owner`` (Module or Cell) remember the line that created it.

    With ``arguments``, what it was made with as well.

    The roots that count are read from ``owner._torch2ms_root`` when an instance is made.
    """
    plain = owner.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        root = getattr(owner, "_torch2ms_root", "")
        if root:
            object.__setattr__(self, PLACE, _creation(self, root, sys._getframe(1)))
        if root and arguments:
            object.__setattr__(self, ARGUMENTS, _arguments(self, sys._getframe(1)))

    owner.__init__ = __init__


def _arguments(instance: object, frame: FrameType | None) -> dict[str, Any] | None:
    """Return the arguments of the outermost constructor, which runs still; None where it takes any.

    MindSpore decorates constructors: what takes any arguments there has another name.
    """
    found: FrameType | None = None
    while frame is not None:
        code, first = frame.f_code, frame.f_code.co_varnames[:1]
        if code.co_name == "__init__" and first and frame.f_locals.get(first[0]) is instance:
            found = frame
        frame = frame.f_back
    if found is None or found.f_code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    code = found.f_code
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return {name: found.f_locals[name] for name in names if name in found.f_locals}


def _creation(instance: object, root: str, frame: FrameType | None) -> tuple[str, int]:
    while frame is not None:
        first = frame.f_code.co_varnames[:1]
        own = bool(first) and frame.f_locals.get(first[0]) is instance
        if not own and frame.f_code.co_filename.startswith(root):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


def place(instance: object, root: Path) -> tuple[str, int]:
    """File relative to root and 1-based line where an instance was created, else its class."""
    file, line = instance.__dict__.get(PLACE) or ("", 0)
    if not file:
        try:
            file = inspect.getsourcefile(type(instance)) or ""
            line = inspect.getsourcelines(type(instance))[1]
        except (OSError, TypeError):
            return "", 0
    if not Path(file).is_relative_to(root):
        return "", 0
    return Path(file).relative_to(root).as_posix(), line
