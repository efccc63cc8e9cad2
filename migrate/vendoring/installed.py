"""In: the name of a package. Out: where its source is installed, version and licence.

Nothing is imported: a package that needs torch could not be, where this tool runs alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import Distribution
from pathlib import Path

_UNKNOWN = "unknown"
_LICENCES = ("License-Expression", "License")
_CLASSIFIER = "License :: "


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
