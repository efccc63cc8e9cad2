"""In: values and paths as torch.save and torch.load take them. Out: MindSpore checkpoint files."""

import collections
import json
import shutil
import tempfile
from argparse import Namespace

import mindspore as ms
import numpy as np
from mindspore import Tensor

SAVED_STRUCTURE = "structure"
SAVED_DICTS = {"dict": dict, "OrderedDict": collections.OrderedDict}
SAVED_LISTS = {"list": list, "tuple": tuple, "set": set}


def save(obj, f):
    """Reproduces torch.save for Tensors, state dicts and nested containers of plain values.

    The file is a checkpoint of MindSpore. One state dict is stored by its own names, so that
    mindspore.load_checkpoint reads it too; of anything else the structure is stored along as
    JSON. A file appears whole or not at all. Cells and other objects raise TypeError: their code
    is not saved.
    """
    tensors, extra = {}, {}
    if isinstance(obj, dict) and obj and all(plain_entry(*entry) for entry in obj.items()):
        tensors = {key: storable(value) for key, value in obj.items()}
    else:
        extra = {SAVED_STRUCTURE: json.dumps(as_json(obj, tensors, "obj"))}
    rows = [{"name": name, "data": value} for name, value in tensors.items()]
    with tempfile.TemporaryDirectory() as folder:
        written = f"{folder}/written.ckpt"
        ms.save_checkpoint(rows, written, append_dict=extra)
        with open(written, "rb") as source:
            if hasattr(f, "write"):
                shutil.copyfileobj(source, f)
                return
            part = f"{f}.part"
            with open(part, "wb") as target:
                shutil.copyfileobj(source, target)
        shutil.move(part, f)


def load(f):
    """Reproduces torch.load for files of ``save`` and mindspore.save_checkpoint; no code runs."""
    with tempfile.TemporaryDirectory() as folder:
        readable = f"{folder}/readable.ckpt"
        with open(readable, "wb") as target:
            if hasattr(f, "read"):
                shutil.copyfileobj(f, target)
            else:
                with open(f, "rb") as source:
                    shutil.copyfileobj(source, target)
        with open(readable, "rb") as source:
            start = source.read(2)
        if start in (b"PK", b"\x80\x02"):
            raise ValueError(
                f"{f} is a file of torch, not of MindSpore; convert it once: "
                f"torch2ms weights convert {f} OUT.ckpt --record ..."
            )
        found = ms.load_checkpoint(readable)
    structure = found.pop(SAVED_STRUCTURE, None)
    tensors = {name: Tensor(value) for name, value in found.items()}
    return (
        collections.OrderedDict(tensors)
        if structure is None
        else from_json(json.loads(structure), tensors)
    )


def plain_entry(key, value):
    """Whether a checkpoint holds this entry as it is."""
    return (
        isinstance(key, str)
        and key != SAVED_STRUCTURE
        and isinstance(value, Tensor)
        and value.size > 0
    )


def storable(value):
    """A Tensor that checkpoints can hold."""
    if value.dtype in (ms.complex64, ms.complex128):
        raise TypeError("a checkpoint holds no complex Tensors; save real and imaginary parts")
    return value


def as_json(value, tensors, place):
    """A value as JSON; its Tensors are added to ``tensors`` under the place where they stand."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return {kind: as_json(Tensor(np.asarray(value)), tensors, place)}
    if isinstance(value, Tensor) and value.size == 0:
        return {"empty": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, Tensor):
        name = place
        while name in tensors:
            name += "'"
        tensors[name] = storable(value)
        return {"tensor": name}
    if isinstance(value, Namespace):
        return {"Namespace": as_json(vars(value), tensors, place)}
    if isinstance(value, dict):
        kind = "OrderedDict" if isinstance(value, collections.OrderedDict) else "dict"
        return {kind: [
            [as_json(key, tensors, f"{place}.{i}.key"),
             as_json(one, tensors, f"{place}.{key if isinstance(key, str) else i}")]
            for i, (key, one) in enumerate(value.items())
        ]}  # fmt: skip
    if type(value) in SAVED_LISTS.values():
        items = [as_json(one, tensors, f"{place}.{i}") for i, one in enumerate(value)]
        return {type(value).__name__: items}
    raise TypeError(f"{place} is a {type(value).__name__}; save its state_dict() or plain values")


def from_json(value, tensors):
    """The value that ``as_json`` wrote as JSON."""
    if not isinstance(value, dict):
        return value
    kind, inner = next(iter(value.items()))
    if kind == "tensor":
        return tensors[inner]
    if kind == "empty":
        return ms.ops.zeros(tuple(inner), getattr(ms, value["dtype"].lower()))
    if kind in ("array", "number"):
        array = from_json(inner, tensors).asnumpy()
        return array if kind == "array" else array[()]
    if kind == "Namespace":
        return Namespace(**from_json(inner, tensors))
    if kind in SAVED_DICTS:
        return SAVED_DICTS[kind](
            (from_json(key, tensors), from_json(one, tensors)) for key, one in inner
        )
    return SAVED_LISTS[kind](from_json(one, tensors) for one in inner)
