"""In: where the user works and what the options say. Out: excluded patterns and files of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from migrate import settings
from migrate.own_rows import mapping_files


@dataclass(frozen=True)
class Own:
    """What a project brings: patterns to leave out, and files of rows."""

    exclude: tuple[str, ...]
    mappings: tuple[Path, ...]
    train_style: Literal["cells", "model"] = "cells"


def given(source: Path, exclude: Sequence[str] | None, mappings: Sequence[Path] | None) -> Own:
    """[tool.torch2ms] nearest to the source or the working folder, and the options.

    Raises:
        Problem: settings that are not understood, or a file of rows that does not exist.
    """
    found = settings.nearest(source if source.is_dir() else source.parent, Path.cwd())
    rows = mapping_files(found, tuple(mappings or ()))
    return Own((*found.exclude, *(exclude or ())), rows, found.train_style)
