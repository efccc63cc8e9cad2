"""In: the files of a tree. Out: sources of what is Python, and what cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from migrate import notebook
from migrate.notebook import Notebook
from migrate.source import Source, Unreadable, read
from migrate.tree import Found, Tree


@dataclass(frozen=True)
class Failure:
    """A file that has no output; ``internal``: through a fault of this tool."""

    path: str
    where: str
    what: str
    why: str
    next_step: str
    internal: bool = False


@dataclass(frozen=True)
class Inputs:
    """What was read. ``raw``: the bytes of each file in ``sources``; a notebook's source is the
    text of its Python cells, and the notebook itself is in ``notebooks``."""

    raw: Mapping[str, bytes]
    sources: Mapping[str, Source]
    notebooks: Mapping[str, Notebook]
    failures: tuple[Failure, ...]


def read_all(tree: Tree) -> Inputs:
    """Read and parse every Python file and notebook; other files are only tried."""
    raw: dict[str, bytes] = {}
    sources: dict[str, Source] = {}
    notebooks: dict[str, Notebook] = {}
    failures: list[Failure] = []
    for found in tree.files:
        try:
            _read(tree, found, raw, sources, notebooks)
        except Unreadable as error:
            failures.append(
                Failure(found.path, error.where, error.what, error.why, error.next_step)
            )
        except OSError as error:
            why = error.strerror or str(error)
            failures.append(
                Failure(found.path, found.path, "cannot be read", why, "check its permissions")
            )
    return Inputs(raw, sources, notebooks, tuple(failures))


def _read(
    tree: Tree,
    found: Found,
    raw: dict[str, bytes],
    sources: dict[str, Source],
    notebooks: dict[str, Notebook],
) -> None:
    path = found.path
    if found.kind == "python":
        raw[path] = (tree.root / path).read_bytes()
        sources[path] = read(path, raw[path])
    elif found.kind == "notebook":
        data = (tree.root / path).read_bytes()
        taken = notebook.read(path, data)
        sources[path] = read(path, taken.text.encode("utf-8"))
        raw[path], notebooks[path] = data, taken
    elif found.kind == "other":
        (tree.root / path).open("rb").close()
