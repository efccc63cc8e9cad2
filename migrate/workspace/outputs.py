"""In: the files that a command has decided on. Out: they lie on disk, each whole or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate.records.outcomes import Problem

_LISTED = 10


@dataclass(frozen=True)
class Output:
    """One file to write: new ``content``, a copy of the file ``source``, or a ``link`` (its text).

    ``path`` is relative to the output root, with forward slashes; ``mode`` are permission bits.
    """

    path: str
    content: bytes | None = None
    source: Path | None = None
    link: str | None = None
    mode: int = 0o644


def mode_of(path: Path) -> int:
    """Permission bits of a file, with writing by its owner always allowed."""
    return stat.S_IMODE(path.stat().st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR


def check(outputs: Sequence[Output], root: Path, source: Path) -> None:
    """Refuse before anything is written.

    Raises:
        Problem: a target lies in the input, or is a folder, or something on its way is not one.
    """
    inside = source.resolve()
    for output in outputs:
        target = root / output.path
        place = target.parent.resolve() / target.name
        if place == inside or inside in place.parents:
            raise Problem(
                str(target), "would change the input", "input files are never written",
                "choose another output with -o",
            )  # fmt: skip
        _check_place(target)


def listed(root: Path, paths: Sequence[str]) -> str:
    """The first of some files below a folder, as an error names them."""
    shown = ", ".join(str(root / path) for path in paths[:_LISTED])
    return shown + (", ..." if len(paths) > _LISTED else "")


def _check_place(target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        raise Problem(
            str(target), "cannot be written", "there is a folder of that name",
            "remove it, or choose another output with -o",
        )  # fmt: skip
    for parent in target.parents:
        if parent.is_dir():
            return
        if os.path.lexists(parent):
            raise Problem(
                str(parent), "is not a folder", f"{target.name} should be written in it",
                "remove it, or choose another output with -o",
            )  # fmt: skip


def write(outputs: Sequence[Output], root: Path) -> None:
    """Write all files in the order given; each appears under its name only when it is complete.

    Raises:
        Problem: the disk is full, a folder is not writable, a copied file cannot be read.
    """
    for number, output in enumerate(outputs):
        target = root / output.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _place(output, target)
        except OSError as error:
            raise Problem(
                str(target), "cannot be written", error.strerror or str(error),
                f"{number} of {len(outputs)} files are complete, this and the rest are missing; "
                "mend the cause and run again",
            ) from error  # fmt: skip


def _place(output: Output, target: Path) -> None:
    if output.link is not None:
        _place_link(output.link, target)
    elif output.source is not None:
        source = output.source
        write_atomically(target, lambda path: shutil.copyfile(source, path), output.mode)
    else:
        content = output.content or b""
        write_atomically(target, lambda path: path.write_bytes(content), output.mode)


def write_atomically(target: Path, fill: Callable[[Path], object], mode: int = 0o644) -> None:
    """Let ``fill`` write a new file beside the target, then put it in the target's place."""
    descriptor, name = tempfile.mkstemp(prefix=".torch2ms-", dir=target.parent)
    os.close(descriptor)
    try:
        fill(Path(name))
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _place_link(text: str, target: Path) -> None:
    # A link cannot be made under a name that exists, so it is made in a folder of its own.
    with tempfile.TemporaryDirectory(prefix=".torch2ms-", dir=target.parent) as folder:
        link = Path(folder) / "link"
        os.symlink(text, link)
        os.replace(link, target)
