"""In: a checkpoint of torch or MindSpore and a verified model. Out: the other framework's file.

The names are those that `verify` proved by copying every tensor and comparing hashes, so a
checkpoint is converted without guessing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate.parity.checkpoint_plan import (
    Account,
    Job,
    packed,
    renamed_tree,
    states,
    tensors,
    unpacked,
    unstorable,
    unwrapped,
)
from migrate.parity.exchange import ArrayStore, Spec, as_dict, entries, leaves
from migrate.parity.request import VerifyError
from migrate.parity.session import Sides
from migrate.parity.worker import Worker, WorkerError, WorkerLost, this_python
from migrate.records.result import ModelResult

CKPT = ".ckpt"
SAFE = ".safetensors"
_TORCH_FILE = (b"PK", b"\x80\x02")


@dataclass(frozen=True)
class Conversion:
    """What to convert: ``to_torch`` None: as the names of the tensors say.

    ``only_weights`` leaves out all but the first state dict, ``partial`` writes although tensors
    have no partner, ``base`` is a file of torch that gives what MindSpore does not keep.
    """

    source: Path
    target: Path
    model: ModelResult
    to_torch: bool | None = None
    only_weights: bool = False
    partial: bool = False
    base: Path | None = None
    shard: int = 0
    torch_python: Path | None = None
    timeout: float = 600.0


@dataclass(frozen=True)
class Converted:
    """``files`` were written to the folder; none when something has no partner."""

    account: Account
    to_torch: bool
    files: tuple[str, ...] = ()
    structured: bool = False


def is_torch_file(source: Path) -> bool:
    """Whether a file is one of torch.save, by its first bytes: .ckpt is Lightning's name too."""
    with source.open("rb") as opened:
        return opened.read(2) in _TORCH_FILE


def direction(source: Path, target: Path, asked: bool | None) -> bool | None:
    """True: to torch; None: both files may be either framework's."""
    if asked is not None:
        return asked
    if source.suffix == CKPT and not is_torch_file(source):
        return True
    if target.suffix == CKPT or source.suffix not in (SAFE, ".json"):
        return False
    return True if target.suffix != SAFE else None


def convert_checkpoint(asked: Conversion, folder: Path) -> Converted:
    """Write the other framework's file, named as the target, into a folder.

    Raises VerifyError when the source cannot be read, holds none of the model's tensors, or the
    model was never verified.
    """
    with tempfile.TemporaryDirectory(prefix="torch2ms_") as scratch:
        torch = Worker("torch_side", asked.torch_python or this_python(), Path(scratch))
        sides = Sides(torch, Worker("mindspore_side", this_python(), Path(scratch)), Path(scratch))
        try:
            return convert_with(sides, asked, folder)
        finally:
            sides.stop()


def convert_with(sides: Sides, asked: Conversion, folder: Path) -> Converted:
    """`convert_checkpoint` with workers that outlive it."""
    if not asked.model.weight_names:
        raise VerifyError(asked.model.build, "its weight names are not known", "verify did not "
                          "get to copy its weights", "run torch2ms verify first")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="checkpoint", dir=sides.scratch) as scratch:
        try:
            return _Work(asked, sides.torch, sides.mindspore, Path(scratch)).convert(folder)
        except (WorkerError, WorkerLost, ValueError) as error:
            raise VerifyError(
                str(asked.source), "the checkpoint cannot be converted", _reason(error),
                "give a whole file of tensors and plain values, as torch.save(model.state_dict(), "
                "FILE) writes it",
            ) from error  # fmt: skip


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, WorkerError) else str(error)


@dataclass(frozen=True)
class _Work:
    asked: Conversion
    torch: Worker
    mindspore: Worker
    scratch: Path

    def convert(self, folder: Path) -> Converted:
        asked, account = self.asked, Account()
        tree = self._read(asked.source, "in")
        to_torch = direction(asked.source, asked.target, asked.to_torch)
        if to_torch is None:
            to_torch = _of_mindspore(tree, asked.model, str(asked.source))
        found = self._states(tree, to_torch)
        weights = {} if to_torch else _plain(found)
        base = _plain(self._states(self._read(asked.base, "base"), False)) if asked.base else {}
        store = ArrayStore(self.scratch / "in", 1_000_000)  # behind the keys of what was read
        job = Job(asked.model, store, to_torch, account, base, weights)
        if asked.only_weights or asked.target.suffix == SAFE or asked.shard:
            tree = _only(tree, found, account)
        changed = renamed_tree(tree, job)
        if not to_torch and asked.target.suffix == CKPT:
            for place, leaf in tensors(changed):
                if leaf["t"] == "tensor" and unstorable(leaf):
                    raise ValueError(f"{place}: {unstorable(leaf)}")
        plain = changed["t"] == "dict" and all(one["t"] == "tensor" for one in changed["items"])
        if (account.unknown or account.absent) and not asked.partial:
            return Converted(account, to_torch, structured=not plain)
        return Converted(account, to_torch, self._write(changed, folder), not plain)

    def _states(self, tree: Spec, to_torch: bool) -> list[tuple[str, Spec]]:
        model = self.asked.model
        known = model.weight_names.values() if to_torch else model.weight_names
        found = list(states(tree, frozenset(known) - {""}))
        if found:
            return found
        some = ", ".join(name for name, one in list(tensors(tree))[:3] if one["t"] == "tensor")
        raise VerifyError(
            str(self.asked.source), f"none of its tensors belongs to {model.build}",
            f"it holds {some or 'no tensor at all'}",
            "verify the model that this checkpoint was saved from",
        )  # fmt: skip

    def _read(self, source: Path, name: str) -> Spec:
        """The tree of a file, its arrays moved into the folder of the conversion."""
        arrays = self.scratch / name
        arrays.mkdir()
        mine = source.suffix == CKPT and not is_torch_file(source)
        side = self.mindspore if mine else self.torch
        payload = {"file": str(source.resolve()), "folder": str(arrays)}
        tree: Spec = side.call("read_file", payload, self.asked.timeout)["tree"]
        if name != "in":
            for path in sorted(arrays.glob("*.npy")):
                path.rename(self.scratch / "in" / f"{name}-{path.name}")
            _prefixed(tree, f"{name}-")
        return unpacked(tree) if tree["t"] == "dict" and mine else tree

    def _write(self, tree: Spec, folder: Path) -> tuple[str, ...]:
        asked = self.asked
        mine = asked.target.suffix == CKPT
        side = self.mindspore if mine else self.torch
        payload = {
            "tree": packed(tree) if mine else tree, "arrays": str(self.scratch / "in"),
            "folder": str(folder.resolve()), "name": asked.target.name, "shard": asked.shard,
        }  # fmt: skip
        return tuple(side.call("write_file", payload, asked.timeout)["files"])


def _prefixed(tree: Spec, prefix: str) -> None:
    for _, leaf in leaves(tree):
        if leaf["t"] == "tensor":
            leaf["key"] = prefix + leaf["key"]


def _plain(found: list[tuple[str, Spec]]) -> Mapping[str, Spec]:
    held = {key: one for key, one in entries(found[0][1]).items() if one["t"] == "tensor"}
    return {name: held[key] for name, key in unwrapped(list(held)).items()}


def _of_mindspore(tree: Spec, model: ModelResult, source: str) -> bool:
    """Which framework named the tensors of a .safetensors file."""
    held = set(unwrapped(list(entries(tree))))
    theirs, ours = held & set(model.weight_names), held & set(model.weight_names.values())
    if len(theirs) == len(ours):
        raise VerifyError(
            source, "it may be torch's file or MindSpore's", "the names of its tensors fit both",
            "say which one to write: --to torch or --to mindspore",
        )  # fmt: skip
    return len(ours) > len(theirs)


def _only(tree: Spec, found: list[tuple[str, Spec]], account: Account) -> Spec:
    """The first state dict alone; what else the file holds is listed."""
    place, state = found[0]
    for name, _ in tensors(tree):
        if place and not name.startswith(f"{place}."):
            account.dropped[name] = f"only {place} is written"
    return state if place else as_dict(entries(state))
