"""Keep a user's own ``migrate`` (a file or a package) apart from this one, in one process.

Both stand in ``sys.modules`` under the same names, so each importer gets its own: while code of the
user imports ``migrate``, the modules of this package are put aside, and the other way round.
"""

from __future__ import annotations

import builtins
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "migrate"
FOLDER = Path(__file__).resolve().parents[1]


def is_there(folder: Path) -> bool:
    """Return whether a folder that is searched for modules holds another ``migrate``."""
    own = folder / NAME
    return (folder / f"{NAME}.py").is_file() or (own.is_dir() and own.resolve() != FOLDER)


def _is_ours(file: object) -> bool:
    return isinstance(file, str) and FOLDER in Path(file).resolve().parents


def _package() -> ModuleType:
    """Return this package as a module, without a search that the user's may win."""
    spec = importlib.util.spec_from_file_location(
        NAME, FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Apart:
    """The import function of a process in which both are used; made by ``install``."""

    def __init__(self) -> None:
        self.plain = builtins.__import__
        present = {n: m for n, m in sys.modules.items() if _is_name(n)}
        loaded = present.get(NAME)
        folders = [Path(folder).resolve() for folder in getattr(loaded, "__path__", ())]
        self.ours = loaded is None or FOLDER in folders
        self.aside: dict[str, ModuleType] = {}
        if not self.ours:
            self.aside = {NAME: _package()}
        elif loaded is None:
            sys.modules[NAME] = _package()

    def __call__(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as Python does, from the one that the importer belongs to."""
        importer = globals or {}
        meant = name if not level else str(importer.get("__package__") or "")
        if not _is_name(meant):
            return self.plain(name, globals, locals, fromlist or (), level)
        with self.using(_is_ours(importer.get("__file__"))):
            return self.plain(name, globals, locals, fromlist or (), level)

    @contextmanager
    def using(self, ours: bool) -> Iterator[None]:
        """Let ``migrate`` be this package, or the user's."""
        before = self.ours
        self._turn(ours)
        try:
            yield
        finally:
            self._turn(before)

    def _turn(self, ours: bool) -> None:
        if ours != self.ours:
            present = {n: m for n, m in sys.modules.items() if _is_name(n)}
            for name in present:
                del sys.modules[name]
            sys.modules.update(self.aside)
            self.aside, self.ours = present, ours


def _is_name(name: str) -> bool:
    return name == NAME or name.startswith(f"{NAME}.")


def install() -> Any:
    """Return the import function that keeps both apart, from now on that of the process."""
    if not hasattr(builtins.__import__, "using"):
        builtins.__import__ = Apart()
    return builtins.__import__


@contextmanager
def theirs(folders: Iterable[Path], name: str = "") -> Iterator[None]:
    """Import modules of the user, who may have a ``migrate`` in a folder that is searched."""
    if hasattr(builtins.__import__, "using") or _is_name(name) or any(map(is_there, folders)):
        with install().using(False):
            yield
    else:
        yield
