"""In: where the user works and what the options say. Out: excluded patterns and files of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from migrate.records.choices import Choice
from migrate.records.outcomes import Problem
from migrate.vendoring.library import find
from migrate.vendoring.policy import Wish
from migrate.workspace import choices_file, settings
from migrate.workspace.request import Request
from migrate.workspace.settings import mapping_files


@dataclass(frozen=True)
class Own:
    """What a project brings: patterns to leave out, files of rows, packages to follow or not, and
    what was decided about flagged places."""

    exclude: tuple[str, ...]
    mappings: tuple[Path, ...]
    train_style: Literal["cells", "model"] = "cells"
    wish: Wish = field(default_factory=Wish)
    choices: tuple[Choice, ...] = ()

    def request(
        self,
        source: Path,
        out: Path,
        target: Literal["portable", "mint"],
        helpers: str,
        jobs: int,
        train_style: Literal["cells", "model"],
    ) -> Request:
        """A conversion with all this."""
        return Request(
            source, out, target, helpers, self.exclude, jobs, self.mappings, train_style,
            wish=self.wish, choices=self.choices,
        )  # fmt: skip


Packages = tuple[Sequence[str] | None, Sequence[str] | None, Sequence[Path] | None]


def given(
    source: Path,
    exclude: Sequence[str] | None,
    mappings: Sequence[Path] | None,
    packages: Packages = (None, None, None),
    decided: Path | None = None,
) -> Own:
    """[tool.torch2ms] nearest to the source or the working folder, and the options.

    ``decided`` is a file of choices, if another one than that of the project.

    Raises:
        Problem: settings that are not understood, or a file of rows, a folder or a package that
            does not exist.
    """
    found = settings.nearest(source if source.is_dir() else source.parent, Path.cwd())
    rows = mapping_files(found, tuple(mappings or ()))
    follow, no_follow, paths = packages
    wish = Wish(
        (*found.follow, *(follow or ())),
        (*(name for name in found.no_follow if name not in (follow or ())), *(no_follow or ())),
        (*(paths or ()), *found.follow_path),
    )
    _check(follow or (), paths or (), wish)
    chosen = choices_file.of(source, decided)
    return Own((*found.exclude, *(exclude or ())), rows, found.train_style, wish, chosen)


def _check(follow: Sequence[str], paths: Sequence[Path], wish: Wish) -> None:
    """What the options name has to be there: a slip would be passed over in silence.

    Settings are for many machines; where a package is missing on one, its names are flagged.
    """
    for path in paths:
        if not path.is_dir():
            raise Problem(
                f"--follow-path {path}", "no such folder", "packages are looked for in it",
                "name the folder that holds the package's folder",
            )  # fmt: skip
    for name in follow:
        if find(name, wish.paths) is None:
            raise Problem(
                f"--follow {name}", "no source found", "it is no package with Python files here",
                "install it where torch2ms runs, or name its folder with --follow-path DIR",
            )  # fmt: skip
