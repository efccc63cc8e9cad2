"""In: a checkpoint of torch or MindSpore and a verified model. Out: the other framework's file.

The names are those that `verify` proved by copying every tensor and comparing hashes, so a
checkpoint is converted without guessing, and every tensor of the file is accounted for. Trees are
descriptions of `exchange`. A state dict lies in a .ckpt file by its own names. Of anything else
the structure is stored along as JSON, as the converted program's ``save`` and ``load``
(migrate/helpers/checkpoint.py) do it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.parity.exchange import (
    ArrayStore,
    Spec,
    apply_layout,
    as_dict,
    entries,
    leaves,
    undo_layout,
)
from migrate.parity.optimizer_state import (
    Held,
    Moments,
    to_mindspore_moments,
    to_torch_moments,
)
from migrate.parity.session import Sides
from migrate.parity.worker import Worker, WorkerError, WorkerLost, this_python
from migrate.records.outcomes import Problem
from migrate.records.result import ModelResult

WRAPPERS = ("module.", "_orig_mod.", "_backbone.", "_network.", "network.")
_NO_PARTNER = "MindSpore keeps no such number"
_ELSEWHERE = "the other optimizer keeps no such number, or has it as it starts"


@dataclass
class Account:
    """What became of every tensor of the file: ``copied`` has the new name or, of an optimizer,
    the new place; ``dropped`` and ``unknown`` the reason. ``absent``: in the model only.
    """

    copied: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.copied) + len(self.dropped) + len(self.unknown)


@dataclass(frozen=True)
class Job:
    """One conversion: the model, the arrays, and which way. ``base``: a state dict of torch that
    gives what MindSpore's file lacks; ``weights``: the first state dict of torch's file.
    """

    model: ModelResult
    store: ArrayStore
    to_torch: bool
    account: Account
    base: Mapping[str, Spec] = field(default_factory=dict)
    weights: Mapping[str, Spec] = field(default_factory=dict)


def unwrapped(keys: list[str]) -> dict[str, str]:
    """Return the model's names of keys -> keys.

    What wraps the model stands in front of every key.
    """
    cut = ""
    while prefix := next((w for w in WRAPPERS if _all_have(keys, cut + w)), ""):
        cut += prefix
    return {key.removeprefix(cut): key for key in keys}


def _all_have(keys: list[str], prefix: str) -> bool:
    return bool(keys) and all(key.startswith(prefix) for key in keys)


def tensors(spec: Spec, path: str = "") -> Iterator[tuple[str, Spec]]:
    """Everything in a tree but plain values, by its dotted path."""
    if "items" not in spec:
        if spec["t"] != "value":
            yield path, spec
        return
    for key, one in zip(spec.get("keys", range(len(spec["items"]))), spec["items"], strict=True):
        yield from tensors(one, f"{path}.{key}" if path else str(key))


def states(spec: Spec, known: frozenset[str], path: str = "") -> Iterator[tuple[str, Spec]]:
    """Yield every dictionary of a tree that holds tensors of the model, with its path."""
    held = entries(spec)
    names = [key for key, one in held.items() if one["t"] == "tensor"]
    if known & unwrapped(names).keys():
        yield path, spec
        return
    for key, one in held.items():
        yield from states(one, known, f"{path}.{key}" if path else key)


def renamed_tree(spec: Spec, job: Job, path: str = "") -> Spec:
    """Return the tree with every state dict and optimizer renamed; all else stays as it is."""
    names = job.model.weight_names
    known = frozenset(names.values()) - {""} if job.to_torch else frozenset(names)
    held = entries(spec)
    named = [key for key, one in held.items() if one["t"] == "tensor"]
    if known & unwrapped(named).keys():
        return _state(held, job, path)
    if {"state", "param_groups"} == held.keys():
        return _moments(spec, job, path)
    if spec["t"] not in ("dict", "list", "tuple"):
        return _leaf(spec, job, path)
    keys = spec.get("keys", range(len(spec["items"])))
    pairs = [(key, renamed_tree(one, job, f"{path}.{key}" if path else str(key)))
             for key, one in zip(keys, spec["items"], strict=True)]  # fmt: skip
    kept = [(key, one) for key, one in pairs if one["t"] != "opaque"]
    changed = {**spec, "items": [one for _, one in kept]}
    return {**changed, "keys": [key for key, _ in kept]} if "keys" in spec else changed


def _leaf(spec: Spec, job: Job, path: str) -> Spec:
    if spec["t"] == "opaque":
        job.account.dropped[path] = spec["why"]
    elif spec["t"] == "tensor":
        job.account.copied[path] = "as it is"
    return spec


def _moments(spec: Spec, job: Job, path: str) -> Spec:
    change = to_torch_moments if job.to_torch else to_mindspore_moments
    done: Moments = change(spec, Held(job.model, job.store, job.weights))
    held = [place for place, leaf in tensors(spec) if leaf["t"] == "tensor"]
    front = f"{path}." if path else ""
    if done.tree is None:
        job.account.dropped |= dict.fromkeys((front + place for place in held), done.why)
        job.account.notes.append(f"{path or 'optimizer'}: not converted, {done.why}")
        return {"t": "opaque", "why": done.why}
    for place in held:
        new = done.places.get(place.removeprefix("state."))
        book = job.account.copied if new else job.account.dropped
        book[front + place] = new or _ELSEWHERE
    job.account.notes += [f"{path}: {note}" for note in done.notes]
    return done.tree


def _state(held: dict[str, Spec], job: Job, path: str) -> Spec:
    front = f"{path}." if path else ""
    named = {key: one for key, one in held.items() if one["t"] == "tensor"}
    for key in held.keys() - named.keys():
        job.account.dropped[front + key] = "it is no tensor"
    keys = unwrapped(list(named))
    mine = {name: named[key] for name, key in keys.items()}
    change = _state_to_torch if job.to_torch else _state_to_mindspore
    return as_dict(change(mine, job, front))


def _state_to_mindspore(mine: dict[str, Spec], job: Job, front: str) -> dict[str, Spec]:
    names, layouts, account = job.model.weight_names, job.model.weight_layouts, job.account
    made: dict[str, Spec] = {}
    for key, spec in mine.items():
        name = names.get(key)
        if name is None:
            account.unknown[front + key] = "the model has no such tensor"
        elif not name:
            account.dropped[front + key] = _NO_PARTNER
        elif name in made and not _equal(_laid(spec, layouts.get(key, ""), job), made[name], job):
            account.unknown[front + key] = f"it shares {name} with another, but not its numbers"
        else:
            account.copied[front + key] = name
            made.setdefault(name, _laid(spec, layouts.get(key, ""), job))
    lost = [key for key, name in names.items() if name and name not in made]
    account.absent += [front + key for key in lost]
    return made


def _state_to_torch(mine: dict[str, Spec], job: Job, front: str) -> dict[str, Spec]:
    account, made = job.account, {}
    known = set(job.model.weight_names.values())
    for key, name in job.model.weight_names.items():
        spec = mine.get(name) if name else None
        if spec is not None:
            made[key] = _laid(spec, job.model.weight_layouts.get(key, ""), job, undo=True)
            account.copied[front + name] = key
        elif key in job.base:
            made[key] = job.base[key]
        elif name:
            account.absent.append(front + key)
        else:
            account.notes.append(f"{front}{key}: not written, {_NO_PARTNER}")
    lost = {front + name: "the model has no such tensor" for name in mine.keys() - known}
    account.unknown |= lost
    return made


def _laid(spec: Spec, layout: str, job: Job, undo: bool = False) -> Spec:
    """Return the tensor in the other framework's shape."""
    if not layout:
        return spec
    array = (undo_layout if undo else apply_layout)(job.store.get(spec["key"]), layout)
    return {**spec, "key": job.store.put(array), "shape": list(array.shape)}


def _equal(one: Spec, other: Spec, job: Job) -> bool:
    first, second = job.store.get(one["key"]), job.store.get(other["key"])
    return bool(one["dtype"] == other["dtype"] and first.tobytes() == second.tobytes())


STRUCTURE = "structure"
STORED = frozenset(
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64"
    .split()
)  # fmt: skip


def unstorable(spec: Spec) -> str:
    """Return why a .ckpt file cannot hold a tensor; empty when it can."""
    if 0 in spec["shape"]:
        return "a .ckpt file holds no tensor without elements"
    if spec["dtype"] not in STORED:
        return f"a .ckpt file holds no {spec['dtype']}"
    return ""


def packed(tree: Spec) -> Spec:
    """Return the entries to write: a dictionary of tensors and, where needed, the structure."""
    if tree["t"] == "dict" and all(
        isinstance(key, str) and key != STRUCTURE and one["t"] == "tensor"
        for key, one in zip(tree["keys"], tree["items"], strict=True)
    ):
        return tree
    found: dict[str, Spec] = {}
    text = json.dumps(_as_json(tree, found, "obj"))
    items = [*found.values(), {"t": "value", "v": text}]
    return {"t": "dict", "keys": [*found, STRUCTURE], "items": items}


def _as_json(spec: Spec, found: dict[str, Spec], place: str) -> Any:
    if spec["t"] == "tensor":
        found[place] = spec
        return {"tensor": place}
    if spec["t"] == "dict":
        return {"dict": [
            [key, _as_json(one, found, f"{place}.{key}")]
            for key, one in zip(spec["keys"], spec["items"], strict=True)
        ]}  # fmt: skip
    if spec["t"] in ("list", "tuple"):
        return {spec["t"]: [_as_json(one, found, f"{place}.{n}")
                            for n, one in enumerate(spec["items"])]}  # fmt: skip
    if spec["t"] == "value":
        return spec["v"]
    raise ValueError(f"{place}: {spec.get('why', spec['t'])} cannot be stored")


def unpacked(entries: Spec) -> Spec:
    """Return the tree that `packed` or the converted program stored.

    Raises ValueError for other text.
    """
    held = dict(zip(entries["keys"], entries["items"], strict=True))
    structure = held.pop(STRUCTURE, None)
    if structure is None or structure["t"] != "value":
        return entries
    return _from_json(json.loads(structure["v"]), held)


def _from_json(value: Any, held: dict[str, Spec]) -> Spec:
    if not isinstance(value, dict):
        return {"t": "value", "v": value}
    kind, inner = next(iter(value.items()))
    if kind == "tensor":
        if inner not in held:
            raise ValueError(f"its structure names {inner}, which is not there: it is damaged")
        return held[inner]
    if kind in ("dict", "OrderedDict"):
        items = [_from_json(one, held) for _, one in inner]
        return {"t": "dict", "keys": [key for key, _ in inner], "items": items}
    if kind in ("list", "tuple"):
        return {"t": kind, "items": [_from_json(one, held) for one in inner]}
    return {"t": "opaque", "why": f"a {kind} of the converted program"}


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
    """Return whether torch.save wrote a file, by its first bytes: .ckpt is Lightning's name too."""
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

    Raises Problem when the source cannot be read, holds none of the model's tensors, or the
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
    """Do as `convert_checkpoint` with workers that outlive it."""
    if not asked.model.weight_names:
        raise Problem(asked.model.build, "its weight names are not known", "verify did not "
                          "get to copy its weights", "run torch2ms verify first")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="checkpoint", dir=sides.scratch) as scratch:
        try:
            return _Work(asked, sides.torch, sides.mindspore, Path(scratch)).convert(folder)
        except (WorkerError, WorkerLost, ValueError) as error:
            raise Problem(
                str(asked.source), "the checkpoint cannot be converted", _reason(error),
                "give a whole file of tensors and plain values, as torch.save(model.state_dict(), "
                "FILE) writes it",
            ) from error  # fmt: skip


def _reason(error: Exception) -> str:
    return error.failed.text if isinstance(error, WorkerError) else str(error)


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
        raise Problem(
            str(self.asked.source), f"none of its tensors belongs to {model.build}",
            f"it holds {some or 'no tensor at all'}",
            "verify the model that this checkpoint was saved from",
        )  # fmt: skip

    def _read(self, source: Path, name: str) -> Spec:
        """Return the tree of a file, its arrays moved into the folder of the conversion."""
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
    """Return which framework named the tensors of a .safetensors file."""
    held = set(unwrapped(list(entries(tree))))
    theirs, ours = held & set(model.weight_names), held & set(model.weight_names.values())
    if len(theirs) == len(ours):
        raise Problem(
            source, "it may be torch's file or MindSpore's", "the names of its tensors fit both",
            "say which one to write: --to torch or --to mindspore",
        )  # fmt: skip
    return len(ours) > len(theirs)


def _only(tree: Spec, found: list[tuple[str, Spec]], account: Account) -> Spec:
    """Return the first state dict alone; what else the file holds is listed."""
    place, state = found[0]
    for name, _ in tensors(tree):
        if place and not name.startswith(f"{place}."):
            account.dropped[name] = f"only {place} is written"
    return state if place else as_dict(entries(state))
