"""In: mappings/followed.toml and the options. Out: which names of which packages are followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrate.mapping.table import Table, TableError, is_pattern, read_toml
from migrate.records.outcomes import Problem

FILE = "followed.toml"


@dataclass(frozen=True)
class Wish:
    """What a user says: packages to follow or not ("all": none), and folders that hold packages."""

    follow: tuple[str, ...] = ()
    no_follow: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Policy:
    """How one package is followed.

    ``names``: what a project may use of it, with all below. ``whole``: names that look up what the
    modules of a package have registered, with that package: it is taken whole. ``modules``: only
    these are converted; what they use of the rest works without torch and stays imported.
    """

    package: str
    names: tuple[str, ...]
    whole: Mapping[str, str] = field(default_factory=dict)
    modules: frozenset[str] = frozenset()

    def covers(self, name: str) -> bool:
        """Whether a name is one of those, or below one."""
        return any(is_below(name, one) for one in self.names)

    def leads_to(self, name: str) -> bool:
        """Whether one of those lies below a name."""
        return any(is_below(one, name) for one in self.names)

    def converts(self, module: str) -> bool:
        return not self.modules or module in self.modules


def is_below(name: str, space: str) -> bool:
    return name == space or name.startswith(space + ".")


def policies(table: Table, wish: Wish) -> dict[str, Policy]:
    """The packages that may be followed, by name. Raises Problem: the file cannot be read."""
    path = table.folder / FILE
    try:
        found = read_toml(path) if path.is_file() else {}
        known = {name: _policy(path, name, entry) for name, entry in found.items()}
    except TableError as error:
        raise Problem(str(path), "cannot be read", str(error), "correct that file") from error
    if "all" in wish.no_follow:
        known = {}
    for name in wish.follow:
        known.setdefault(name, Policy(name, (name,)))
    return {name: one for name, one in known.items() if name not in wish.no_follow}


def _policy(path: Path, name: str, entry: Mapping[str, object]) -> Policy:
    keys = {"names", "whole", "modules", "why"}
    if unknown := sorted(set(entry) - keys):
        raise TableError(f"{path}: {name}: unknown key {unknown[0]}; one of {sorted(keys)}")
    names, whole, modules = (entry.get(key, ()) for key in ("names", "whole", "modules"))
    if not isinstance(names, list) or not entry.get("why"):
        raise TableError(f"{path}: {name}: names (a list) and why are missing; write both")
    pairs = dict(whole) if isinstance(whole, dict) else {}
    only = frozenset(modules) if isinstance(modules, list) else frozenset()
    return Policy(name, tuple(names), pairs, only)


def answered(table: Table, name: str) -> bool:
    """Whether the table has a row for the name itself: then that is how it is converted."""
    return any(not is_pattern(row.key) for row in table.rows(name))
