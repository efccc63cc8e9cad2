"""Find the imported packages that matter: torch, and those that are converted along."""

from __future__ import annotations

from migrate.analysis.program import Program
from migrate.analysis.types.kinds import Kind, kind
from migrate.analysis.types.world import World
from migrate.mapping.names import root_of
from migrate.mapping.table import Table


def followed_kind(name: str, world: World) -> Kind | None:
    """The kind; None: the package is not converted along, or a row says what becomes of the name.

    A module of which some names have rows has none: its name leads to both.
    """
    followed = world.program.followed
    if not followed.modules or not followed.wants(world.table, name):
        return None
    if name in followed.modules:
        return None if name in followed.mixed else kind("project", followed.modules[name])
    module, _, last = name.rpartition(".")
    path = followed.modules.get(module)
    return world.global_kind(path, last) or None if path else None


def kind_along(name: str, importer: str, world: World) -> Kind | None:
    """The same for an import; a package that imports itself by its name means its own files."""
    itself = world.program.followed.package_of(importer) == name.partition(".")[0]
    return None if itself else followed_kind(name, world)


def has_torch(program: Program, table: Table, roots: frozenset[str]) -> bool:
    """Return whether a file imports torch, something the table covers, or what needs torch.

    A library that needs torch proves nothing in code that was converted: it is flagged there
    already, and its import may stand in a branch or for an optional part.

    Args:
        roots: the first parts of the names that the table covers: "torch", "einops".
    """
    names = {name for file in program.files.values() for name in file.imported}
    found = set(map(root_of, names))
    needing = "mindspore" not in found and any(map(table.needs_torch, names))
    return needing or not found.isdisjoint(roots)
