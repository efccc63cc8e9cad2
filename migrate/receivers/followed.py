"""In: the full name of something installed. Out: its kind, if that is converted along."""

from __future__ import annotations

from migrate.receivers.kinds import Kind, kind
from migrate.receivers.world import World


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
