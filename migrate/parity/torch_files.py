"""Read and write files of torch.save, .safetensors files, and their indices.

A tree is a description of `exchange` whose tensors lie bit by bit as .npy files in a folder: what
numpy lacks (bfloat16, float8) as whole numbers of the same width.
"""

from __future__ import annotations

import json
import pickle
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from migrate.parity.channel import Payload
from migrate.parity.exchange import Array, ArrayStore, Spec, decode, encode, leaves
from migrate.parity.torch_values import dtype_name

SAFE = ".safetensors"
INDEX = ".index.json"
_BITS = {1: torch.uint8, 2: torch.int16}


def read_file(request: Payload) -> Payload:
    """``{"tree": ...}``: what a file (or the files that an index names) holds; no code runs."""
    store = ArrayStore(Path(request["folder"]))

    def tensor(item: Any) -> Spec | None:
        if not isinstance(item, torch.Tensor):
            return None
        if item.layout is not torch.strided or item.is_quantized or item.is_meta:
            return {"t": "opaque", "why": "a sparse, quantised or empty (meta) tensor"}
        shape = list(item.shape)
        return {"t": "tensor", "key": store.put(bits(item)), "dtype": dtype_name(item),
                "shape": shape}  # fmt: skip

    return {"tree": encode(_loaded(Path(request["file"])), tensor)}


def _loaded(file: Path) -> Any:
    if file.name.endswith(INDEX):
        return OrderedDict(_of_shards(file))
    if file.suffix == SAFE:
        from safetensors.torch import load_file

        return load_file(file)
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        asks = getattr(torch.serialization, "get_unsafe_globals_in_checkpoint", None)
        found = asks(file) if asks else []
        if found:
            raise PermissionError(f"it runs code when it is read: {', '.join(found)}") from error
        raise ValueError("it is damaged, or no file of torch.save") from error


def _of_shards(index: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that an index names, shard by shard."""
    named = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    for name in sorted(set(named.values())):
        if Path(name).name != name or name.endswith(INDEX):
            raise PermissionError(f"{name!r} is no file beside the index")
        held = _loaded(index.with_name(name))
        wanted = [key for key, shard in named.items() if shard == name]
        missing = [key for key in wanted if key not in held]
        if missing:
            raise ValueError(f"{name} does not hold {missing[0]}")
        yield from ((key, held[key]) for key in wanted)


def bits(tensor: torch.Tensor) -> Array:
    """The numbers as numpy has them, else whole numbers of the same bits."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    try:
        return np.asarray(plain.numpy()).reshape(tuple(plain.shape))
    except TypeError:
        whole = plain.reshape(-1).view(_BITS[plain.element_size()])
        return whole.numpy().reshape(tuple(plain.shape))


def _tensor(spec: Spec, store: ArrayStore) -> torch.Tensor:
    plain = torch.from_numpy(store.get(spec["key"]))
    dtype = getattr(torch, spec["dtype"])
    return plain if plain.dtype is dtype else plain.reshape(-1).view(dtype).reshape(spec["shape"])


def write_file(request: Payload) -> Payload:
    """Write a tree to a file in a folder; ``{"files": [names]}``, an index last.

    Tensors of one key share their memory, as tied weights do. What was written is read again and
    compared bit by bit. ``shard`` (bytes; 0: no limit) splits a state dict into several files.
    """
    store = ArrayStore(Path(request["arrays"]))
    made: dict[str, torch.Tensor] = {}

    def tensor(spec: Spec) -> torch.Tensor:
        return made.setdefault(spec["key"], _tensor(spec, store))

    value = decode(request["tree"], tensor, lambda name: getattr(torch, name))
    folder, name = Path(request["folder"]), request["name"]
    files = _write_shards(value, folder, name, request["shard"])
    _compare(request["tree"], folder / files[-1], store)
    return {"files": files}


def _write(value: Any, file: Path) -> None:
    if file.suffix != SAFE:
        torch.save(value, file)
        return
    from safetensors.torch import save_file

    apart = {key: one.clone(memory_format=torch.contiguous_format) for key, one in value.items()}
    save_file(apart, file, metadata={"format": "pt"})


def _write_shards(value: Any, folder: Path, name: str, limit: int) -> list[str]:
    groups: list[dict[str, Any]] = [{}]
    size = 0
    for key, one in value.items() if limit else ():
        length = one.numel() * one.element_size()
        if groups[-1] and size + length > limit:
            groups.append({})
            size = 0
        groups[-1][key] = one
        size += length
    if len(groups) == 1:
        _write(value, folder / name)
        return [name]
    stem, suffix = Path(name).stem, Path(name).suffix
    names = [f"{stem}-{n:05d}-of-{len(groups):05d}{suffix}" for n in range(1, len(groups) + 1)]
    for shard, group in zip(names, groups, strict=True):
        _write(group, folder / shard)
    total = sum(one.numel() * one.element_size() for one in value.values())
    where = {key: shard for shard, group in zip(names, groups, strict=True) for key in group}
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (folder / f"{name}{INDEX}").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return [*names, f"{name}{INDEX}"]


def _compare(tree: Spec, file: Path, store: ArrayStore) -> None:
    wrote: dict[str, Spec] = {p: leaf for p, leaf in leaves(tree) if leaf["t"] == "tensor"}
    found: dict[str, torch.Tensor] = {}

    def tensor(item: Any) -> Spec | None:
        if not isinstance(item, torch.Tensor):
            return None
        found[str(len(found))] = item
        return {"t": "tensor", "key": str(len(found) - 1)}

    back = {p: leaf for p, leaf in leaves(encode(_loaded(file), tensor)) if leaf["t"] == "tensor"}
    if back.keys() != wrote.keys():
        raise OSError(f"{file.name} does not hold what was written to it")
    for place, leaf in back.items():
        if bits(found[leaf["key"]]).tobytes() != store.get(wrote[place]["key"]).tobytes():
            raise OSError(f"{file.name}: {place} was not written as it is")


def save_state(model: torch.nn.Module, request: Payload) -> Payload:
    """Write the state dict to ``file``; the names of its tensors."""
    state = model.state_dict()
    torch.save(state, Path(request["file"]))
    return {"keys": [key for key, one in state.items() if isinstance(one, torch.Tensor)]}


def compare_state(model: torch.nn.Module, request: Payload) -> Payload:
    """Compare the ``file`` that came back with the model, as `load_state_dict` would take it.

    ``{"faults": {name: reason}, "extra": [names], "elements": {name: numbers compared}}``
    """
    state = torch.load(request["file"], map_location="cpu", weights_only=True)
    faults: dict[str, str] = {}
    elements: dict[str, int] = {}
    for key, wanted in model.state_dict().items():
        if not isinstance(wanted, torch.Tensor) or key in request["free"]:
            continue
        elements[key] = wanted.numel()
        faults[key] = _fault(state.get(key), wanted)
    return {
        "faults": {key: why for key, why in faults.items() if why},
        "extra": [key for key in state if key not in model.state_dict()],
        "elements": elements,
    }


def _fault(back: object, wanted: torch.Tensor) -> str:
    if not isinstance(back, torch.Tensor):
        return "does not come back"
    if back.shape != wanted.shape:
        return f"comes back as {tuple(back.shape)} instead of {tuple(wanted.shape)}"
    one, other = bits(back.to(wanted.dtype)), bits(wanted)
    wrong = int((one != other).sum()) if one.tobytes() != other.tobytes() else 0
    if one.tobytes() == other.tobytes():
        return ""
    return f"{wrong or 'some'} of {wanted.numel()} numbers come back otherwise"
