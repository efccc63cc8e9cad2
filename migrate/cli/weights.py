"""In: the arguments of ``torch2ms weights convert``. Out: the other framework's file, whole."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.cli.terminal import need
from migrate.records.outcomes import Problem
from migrate.records.result import ModelResult, Verification
from migrate.workspace import record, settings
from migrate.workspace.record import Located

if TYPE_CHECKING:
    from migrate.parity.checkpoint import Converted

_TORCH = (".pth", ".pt", ".bin", ".tar", ".safetensors")
_READ = (*_TORCH, ".ckpt", ".index.json")
_WRITTEN = (*_TORCH, ".ckpt")
_SHARDED = (".safetensors", ".bin")
_LISTED = 8


@dataclass(frozen=True)
class Wanted:
    """What the command line says besides the two files."""

    to: str | None = None
    build: str | None = None
    base: Path | None = None
    only_weights: bool = False
    partial: bool = False
    shard: int = 0
    force: bool = False
    torch_python: Path | None = None


def run(source: Path, target: Path, out: Path, wanted: Wanted) -> int:
    """Convert the file and print the account; 1 when tensors have no partner."""
    done = converted(source, target, out, wanted)
    for line in lines(done, target):
        print(line)
    return 1 if done.account.unknown or done.account.absent else 0


def converted(source: Path, target: Path, out: Path, wanted: Wanted) -> Converted:
    """Convert the file. Raises Problem; writes all or nothing."""
    _check(source, target, wanted)
    need("numpy", "mindspore")
    model = _model(record.locate(out), out, wanted)
    from migrate.parity.checkpoint import Conversion, convert_checkpoint

    asked = Conversion(
        source, target, model, None if wanted.to is None else wanted.to == "torch",
        wanted.only_weights, wanted.partial, wanted.base, wanted.shard, wanted.torch_python,
    )  # fmt: skip
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".torch2ms-", dir=target.parent) as folder:
        done = convert_checkpoint(asked, Path(folder))
        _check_fit(done, model, source, wanted)
        _placed(Path(folder), done.files, target, wanted.force)
    return done


def _check_fit(done: Converted, model: ModelResult, source: Path, wanted: Wanted) -> None:
    """Raise Problem where the file is of another model than the one that was taken for it."""
    account = done.account
    if wanted.build is None and len(account.unknown) > len(account.copied):
        few = ", ".join(list(account.unknown)[:3])
        raise Problem(
            str(source), f"most of its tensors are not those of {model.build} of {model.source}",
            f"{len(account.unknown)} of {account.total} have no partner, as {few}",
            "name the model with --build 'Net(10)', and its file with --record OUT/FILE.py",
        )  # fmt: skip


def _placed(folder: Path, files: tuple[str, ...], target: Path, force: bool) -> None:
    """Move what was written to its place, an index last."""
    for name in files:
        _free(target.with_name(name), force)
    for name in files:
        os.chmod(folder / name, 0o644)
        os.replace(folder / name, target.with_name(name))


def _free(target: Path, force: bool) -> None:
    if target.exists() and not force:
        raise Problem(
            str(target), "already there", "files are replaced only when that is asked for",
            "give --force or another name",
        )  # fmt: skip


def _check(source: Path, target: Path, wanted: Wanted) -> None:
    for file in (source, *([wanted.base] if wanted.base else [])):
        if not file.is_file():
            raise Problem(str(file), "not found", "there is no such file", "give a checkpoint")
        if not file.name.endswith(_READ):
            raise Problem(
                str(file), f"not a checkpoint by its name ({file.suffix or 'no ending'})",
                f"files that end in {', '.join(_READ)} are read", "rename it if it is one",
            )  # fmt: skip
    if target.suffix not in _WRITTEN:
        raise Problem(
            str(target), f"cannot write a file that ends in {target.suffix or 'nothing'}",
            f"the ending says what is written: {', '.join(_WRITTEN)}", "name it NAME.ckpt for "
            "MindSpore, NAME.pth for torch, NAME.safetensors for either",
        )  # fmt: skip
    if wanted.shard and target.suffix not in _SHARDED:
        raise Problem(
            str(target), "--shard-size needs another format",
            f"only {' and '.join(_SHARDED)} files have an index", "leave it out, or rename OUT",
        )  # fmt: skip
    _free(target, wanted.force)
    from_torch = source.suffix != ".ckpt" and target.suffix != ".ckpt"
    if from_torch and ".safetensors" not in (source.suffix, target.suffix, *source.suffixes):
        raise Problem(
            str(target), "both files are torch's", "one side has to be MindSpore's",
            "name OUT NAME.ckpt, or NAME.safetensors",
        )  # fmt: skip


def _model(located: Located, out: Path, wanted: Wanted) -> ModelResult:
    """The model whose names count: as verify found them, else found now without running it."""
    known = record.read_verification(located)
    models = known.models if known else ()
    models = tuple(m for m in models if located.file in ("", m.source))
    if known is None or not any(m.weight_names and wanted.build in (None, m.build) for m in models):
        known = _paired(located, wanted)
        models = known.models
    return chosen(models, wanted.build, out)


def _paired(located: Located, wanted: Wanted) -> Verification:
    """Build the models on both sides and copy the weights; nothing is run."""
    from migrate.parity.ladder import verify
    from migrate.parity.request import VerifyRequest

    found = settings.nearest(located.root, Path.cwd()).verify
    python = wanted.torch_python or found.torch_python
    request = VerifyRequest(located.path, located.root, file=located.file, modes=())
    builds = (wanted.build,) if wanted.build else tuple(m.build for m in found.model)
    asked = replace(request, builds=builds, torch_python=python)
    return verify(asked, lambda line: print(line, file=sys.stderr))


def chosen(found: Sequence[ModelResult], build: str | None, out: Path) -> ModelResult:
    """The model that the file belongs to. Raises Problem when that is not clear."""
    models = [m for m in found if m.weight_names and build in (None, m.build)]
    if len(models) == 1:
        return models[0]
    known = ", ".join(repr(m.build) for m in found if m.weight_names) or "none"
    if models:
        raise Problem(str(out), "several models were found", known, "name one with --build")
    why = next((m.detail for m in found if m.detail), "") or f"there is {known}"
    raise Problem(
        str(out), "no such model can be built on both sides", why,
        "name one with --build 'Net(10)'; torch2ms verify says more",
    )  # fmt: skip


def lines(done: Converted, target: Path) -> Iterator[str]:
    """What became of the tensors."""
    account = done.account
    yield (
        f"Tensors: {account.total} = {len(account.copied)} converted + "
        f"{len(account.dropped)} left out + {len(account.unknown)} unknown"
    )
    yield from _listed("left out", account.dropped)
    yield from _listed("not in the model", account.unknown)
    yield from _listed("not in the file", dict.fromkeys(account.absent, ""))
    yield from (f"  {note}" for note in account.notes[:_LISTED])
    if not done.files:
        yield "Nothing was written: the file and the model differ; --partial writes all the same."
    elif done.to_torch:
        yield f"Next: torch.load({str(target)!r}, weights_only=True)"
    elif done.structured:
        yield f"Next: load({str(target)!r}) of the converted program, for its torch.load"
    else:
        yield f"Next: mindspore.load_checkpoint({str(target)!r})"


def _listed(title: str, found: Mapping[str, str]) -> Iterator[str]:
    for name, why in list(found.items())[:_LISTED]:
        yield f"  {title}: {name}" + (f" ({why})" if why else "")
    if len(found) > _LISTED:
        yield f"  {title}: {len(found) - _LISTED} more"
