"""In: the arguments of ``torch2ms weights convert``. Out: a MindSpore checkpoint, nothing lost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from migrate import record
from migrate.commands.extras import need
from migrate.errors import Problem
from migrate.result import ModelResult, Verification

if TYPE_CHECKING:
    from migrate.parity.checkpoint import Converted

_READ = (".pth", ".pt", ".bin", ".tar", ".safetensors", ".ckpt")
_LISTED = 8


def run(source: Path, target: Path, out: Path, build: str | None, torch_python: Path | None) -> int:
    """Convert the file; 1 when tensors have no partner. Raises Problem; writes all or nothing."""
    _check(source, target)
    located = record.locate(out)
    model = chosen(record.read_verification(located), build, out)
    need("numpy", "mindspore")
    from migrate.parity.checkpoint import convert_checkpoint
    from migrate.parity.request import VerifyError

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".torch2ms-", dir=target.parent) as folder:
        made = Path(folder) / "made.ckpt"
        try:
            done = convert_checkpoint(source, made, model, torch_python)
        except VerifyError as error:
            raise Problem(error.where, error.what, error.why, error.next_step) from error
        for line in lines(done, target):
            print(line)
        if done.unknown or done.absent:
            return 1
        os.chmod(made, 0o644)
        os.replace(made, target)
    return 0


def _check(source: Path, target: Path) -> None:
    if not source.is_file():
        raise Problem(str(source), "not found", "there is no such file", "give a checkpoint")
    if source.suffix not in _READ:
        raise Problem(
            str(source), f"not a checkpoint by its name ({source.suffix or 'no ending'})",
            f"files that end in {', '.join(_READ)} are read", "rename it if it is one",
        )  # fmt: skip
    if target.suffix != ".ckpt":
        raise Problem(
            str(target), "MindSpore reads checkpoints that end in .ckpt",
            f"this one would end in {target.suffix or 'nothing'}", "name it NAME.ckpt",
        )  # fmt: skip


def chosen(found: Verification | None, build: str | None, out: Path) -> ModelResult:
    """The verified model that the file belongs to. Raises Problem when that is not clear."""
    if found is None:
        raise Problem(
            str(out), "not verified", "the names of weights are those that verify proved",
            f"torch2ms verify {out}",
        )  # fmt: skip
    models = [m for m in found.models if m.weight_names and build in (None, m.build)]
    if len(models) == 1:
        return models[0]
    known = ", ".join(repr(m.build) for m in found.models if m.weight_names) or "none"
    what = "several models were verified" if models else "no such model was verified"
    raise Problem(str(out), what, f"verified: {known}", "name one of them with --build")


def lines(done: Converted, target: Path) -> Iterator[str]:
    """What became of the tensors."""
    total = len(done.copied) + len(done.dropped) + len(done.unknown)
    yield (
        f"Tensors: {total} = {len(done.copied)} converted + {len(done.dropped)} not needed "
        f"+ {len(done.unknown)} unknown"
    )
    for title, names in (("not in the model", done.unknown), ("not in the file", done.absent)):
        for name in names[:_LISTED]:
            yield f"  {title}: {name}"
        if len(names) > _LISTED:
            yield f"  {title}: {len(names) - _LISTED} more"
    if done.unknown or done.absent:
        yield "Nothing was written: the file and the verified model differ."
    else:
        yield f"Next: mindspore.load_checkpoint({str(target)!r})"
