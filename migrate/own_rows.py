"""In: settings, options, installed packages. Out: the mapping files of users, the last one wins.

A package brings rows by an entry point: ``[project.entry-points."torch2ms.mappings"]`` with
``any_name = "package.folder"``; every ``*.toml`` in that folder is a file of rows. The package is
looked up, not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from migrate.errors import Problem
from migrate.settings import Settings

GROUP = "torch2ms.mappings"


def mapping_files(settings: Settings, given: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Files of installed packages, then of the project, then those given (--mappings).

    Raises:
        Problem: a file does not exist, or an entry point names a folder without rows.
    """
    listed = (*settings.mappings, *given)
    for path in listed:
        if not path.is_file():
            raise Problem(
                str(path), "no file of rows", "it does not exist, or is a folder",
                "correct --mappings or mappings = [...] in [tool.torch2ms]",
            )  # fmt: skip
    return tuple(dict.fromkeys((*_installed(), *(path.resolve() for path in listed))))


def _installed() -> Iterator[Path]:
    for point in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        yield from _files(point)


def _files(point: EntryPoint) -> list[Path]:
    try:
        spec = find_spec(point.module)
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for folder in folders for path in sorted(Path(folder).glob("*.toml"))]
    if not found:
        name = point.dist.name if point.dist else "an installed package"
        raise Problem(
            f"entry point {GROUP}: {point.name} = {point.value}", "brings no rows",
            f"{name} names a package folder that holds no *.toml", "correct or remove that package",
        )  # fmt: skip
    return [path.resolve() for path in found]
