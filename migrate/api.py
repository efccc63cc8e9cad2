"""What the command line does, as functions; ``migrate`` imports them when they are asked for.

Settings of the nearest pyproject.toml ([tool.torch2ms]) count, as for the commands. What cannot be
done raises ``migrate.Problem``, whose text says where, what, why and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from migrate.cli import own
from migrate.records.result import Verification
from migrate.workspace import merge, project
from migrate.workspace.conversion import Conversion
from migrate.workspace.project import ConvertedText
from migrate.workspace.settings import Settings, VerifySettings, mapping_files

if TYPE_CHECKING:
    from migrate.parity.checkpoint import Converted
    from migrate.report.scan import Assessment

Target = Literal["portable", "mint"]
Style = Literal["cells", "model"]


def convert(
    source: str | Path, out: str | Path, *, target: Target = "portable",
    helpers: Literal["inline", "module"] | None = None, train_style: Style | None = None,
    exclude: Sequence[str] = (), mappings: Sequence[str | Path] = (), follow: Sequence[str] = (),
    no_follow: Sequence[str] = (), jobs: int = 1, force: bool = False,
) -> Conversion:  # fmt: skip
    """Convert a file, a notebook or a folder, and write what came of it, with its record.

    Args:
        source, out: FILE|DIR and -o of ``torch2ms convert``, whose options the others are.
        mappings: rows (*.toml) and rules (*.py) of your own.
        jobs: processes; 0: as many as are useful.
        force: replace files that are there, and keep those that were edited by hand beside.

    Returns:
        The conversion: ``status`` is the exit code of the command (0: nothing is flagged, and no
        hand edit is in conflict),
        ``record.files`` has the entries, one for each reference to torch.

    Raises:
        Problem: the input cannot be read, or files would be replaced that convert did not write;
            nothing is written.
    """
    path = Path(source)
    brought = own.given(path, exclude, [*map(Path, mappings)], (follow, no_follow, None))
    style = train_style or brought.train_style
    request = brought.request(path, Path(out), target, helpers or "", jobs, style)
    conversion = project.convert(request)
    placed = merge.placed(conversion, path, force)
    placed.write()
    return placed.conversion


def convert_source(
    text: str, *, target: Target = "portable", train_style: Style = "cells",
    mappings: Sequence[str | Path] = (),
) -> ConvertedText:  # fmt: skip
    """Convert the source of one module and return its new ``text``, with its ``entries``.

    Helpers stand in the text. Settings of a project do not count; ``mappings`` are rows (*.toml)
    and rules (*.py).

    Raises:
        Problem: a file of ``mappings`` is wrong.
        migrate.syntax.source.Unreadable: the text is not Python 3.
    """
    files = mapping_files(Settings(), [*map(Path, mappings)])
    rows, rules = project.load(files, target)
    return project.convert_text(text, rows, train_style, rules)


def scan(
    source: str | Path, *, target: Target = "portable", exclude: Sequence[str] = (),
    mappings: Sequence[str | Path] = (), jobs: int = 1,
) -> Assessment:  # fmt: skip
    """Assess a file or folder: what convert would do, the hard places first; nothing is written.

    Raises:
        Problem: the input is missing, unreadable, or holds no Python.
    """
    from migrate.cli.table import load
    from migrate.report.scan import assess

    path = Path(source)
    brought = own.given(path, exclude, [*map(Path, mappings)])
    rows, files = load(brought.mappings), brought.mappings
    return assess(path, rows, target, brought.exclude, jobs, files).assessment


def verify(
    out: str | Path, *, build: str | Sequence[str] = (), input: str | Sequence[str] = (),
    mode: Literal["both", "pynative", "graph"] | None = None, steps: int | None = None,
    loss: str | Sequence[str] = (), target: str | Sequence[str] = (),
    optimizer: str | Sequence[str] = (), k: float | None = None, rtol: float | None = None,
    atol: float | None = None, timeout: float | None = None, torch_python: Path | None = None,
) -> Verification:  # fmt: skip
    """Run original and output side by side; return the verdict of every model and Cell.

    The arguments are the options of ``torch2ms verify``: ``build="Net(10)"``,
    ``input="2x3x32x32"``. Both frameworks run in processes of their own; nothing is written.
    ``assert_parity`` does the same and raises where they differ.

    Raises:
        Problem: there is no record of a conversion, or a framework is missing.
    """
    from migrate.cli.verify import verified

    return verified(Path(out), VerifySettings(
        build=_several(build), input=_several(input), mode=mode, steps=steps,
        loss=_several(loss), target=_several(target), optimizer=_several(optimizer), k=k,
        rtol=rtol, atol=atol, timeout=timeout, torch_python=torch_python,
    ))  # fmt: skip


def weights(
    source: str | Path, target: str | Path, out: str | Path, *, build: str | None = None,
    to: Literal["torch", "mindspore"] | None = None, partial: bool = False, force: bool = False,
) -> Converted:  # fmt: skip
    """Convert a checkpoint between torch and MindSpore by the names of a conversion.

    Args:
        source, target: the files; the ending of ``target`` says what is written.
        out: the output of convert, with its record.
        build: the model, where several could be meant: "Net(10)".
        partial: write although tensors have no partner; without it ``target`` is not written then.

    Returns:
        The account of all tensors.

    Raises:
        Problem: a file is missing or is no checkpoint, or the model cannot be built.
    """
    from migrate.cli.weights import Wanted, converted

    wanted = Wanted(to=to, build=build, partial=partial, force=force)
    return converted(Path(source), Path(target), Path(out), wanted)


def _several(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
