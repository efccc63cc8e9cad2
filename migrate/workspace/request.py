"""In: what a command was asked for. Out: the request of a conversion, and the files it is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from migrate.records.choices import Choice
from migrate.records.outcomes import Problem
from migrate.vendoring.policy import Wish
from migrate.workspace.tree import Found, Kind, Tree, walk

if TYPE_CHECKING:
    from migrate.analysis.types.recorded import Recorded


@dataclass(frozen=True)
class Request:
    """What to convert and how. ``helpers``: "inline", "module" or "" (inline for a single file).

    ``jobs`` 0: as many processes as the machine and the number of files make useful.
    ``recorded``: the types that receivers had when the torch code ran. ``wish``: which installed
    packages are converted along. ``choices``: what a person decided about flagged places.
    """

    source: Path
    output: Path
    target: Literal["portable", "mint"] = "portable"
    helpers: str = ""
    exclude: tuple[str, ...] = ()
    jobs: int = 0
    mappings: tuple[Path, ...] = ()
    train_style: Literal["cells", "model"] = "cells"
    recorded: Recorded | None = None
    wish: Wish = field(default_factory=Wish)
    choices: tuple[Choice, ...] = ()


def inputs(request: Request) -> Tree:
    """List what is to be converted.

    Raises:
        Problem: the input is missing or holds no Python, or the output cannot lie where it should.
    """
    source, output = request.source, request.output
    if not source.exists():
        raise Problem(str(source), "not found", "there is no such file or folder", "check the path")
    if source.is_dir():
        return _folder(request)
    kinds: dict[str, Kind] = {".py": "python", ".pyw": "python", ".ipynb": "notebook"}
    if source.suffix not in kinds:
        raise Problem(
            str(source), "not a Python file", "convert takes .py and .ipynb files, and folders",
            "give such a file or the folder of the project",
        )  # fmt: skip
    other_kind = output.suffix in kinds and not output.is_dir()
    if output.suffix != source.suffix and (output.is_file() or other_kind):
        raise Problem(
            str(output), "not a folder", f"OUT is a folder, or a file that ends in {source.suffix}",
            "choose another output with -o",
        )  # fmt: skip
    found = Found(source.name, kinds[source.suffix], source.stat().st_size)
    return Tree(source.parent, (found,), ())


def _folder(request: Request) -> Tree:
    source, output = request.source.resolve(), request.output.resolve()
    if output == source or source in output.parents:
        raise Problem(
            str(request.output), "lies inside the input", "the output would be converted again",
            f"choose a folder outside {request.source} with -o",
        )  # fmt: skip
    if output.exists() and not output.is_dir():
        raise Problem(
            str(request.output), "not a folder", f"{request.source} is one",
            "choose another output with -o",
        )  # fmt: skip
    tree = walk(request.source, request.exclude)
    if not (*tree.of_kind("python"), *tree.of_kind("notebook")):
        left_out = f" ({len(tree.skipped)} files and folders were left out)" if tree.skipped else ""
        raise Problem(
            str(request.source), "no Python files", f"nothing to convert in it{left_out}",
            "check the path; --exclude '!PATTERN' takes back in what .gitignore names",
        )  # fmt: skip
    return tree
