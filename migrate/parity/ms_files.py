"""Read and write MindSpore checkpoint files as trees of values (see `torch_files`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np

from migrate.parity.cells import Net, held_at, put
from migrate.parity.channel import Payload
from migrate.parity.exchange import Array, ArrayStore, Spec
from migrate.parity.ms_training import parameters_of
from migrate.parity.ms_values import array, dtype_name


def _bits(tensor: Any) -> Array:
    numbers = np.asarray(tensor.asnumpy())
    return numbers.view(np.int16) if tensor.dtype == ms.bfloat16 else numbers


def _tensor(spec: Spec, store: ArrayStore) -> Any:
    numbers = store.get(spec["key"])
    if spec["dtype"] != "bfloat16":
        return ms.Tensor(numbers)
    from mindspore.common.np_dtype import bfloat16

    return ms.Tensor(np.ascontiguousarray(numbers).view(bfloat16).reshape(spec["shape"]))


def read_file(request: Payload) -> Payload:
    """``{"tree": ...}``: the entries of a .ckpt file in order; text stays text."""
    store = ArrayStore(Path(request["folder"]))
    keys: list[str] = []
    items: list[Spec] = []
    for name, value in ms.load_checkpoint(request["file"]).items():
        keys.append(name)
        if not isinstance(value, ms.Tensor):
            items.append({"t": "value", "v": value})
            continue
        items.append({
            "t": "tensor", "key": store.put(_bits(value)), "dtype": dtype_name(value.dtype),
            "shape": [int(size) for size in value.shape],
        })  # fmt: skip
    return {"tree": {"t": "dict", "keys": keys, "items": items}}


def write_file(request: Payload) -> Payload:
    """Write tensors and texts to a .ckpt file in a folder; it is read again and compared."""
    store = ArrayStore(Path(request["arrays"]))
    entries = dict(zip(request["tree"]["keys"], request["tree"]["items"], strict=True))
    texts = {name: spec["v"] for name, spec in entries.items() if spec["t"] == "value"}
    specs = {name: spec for name, spec in entries.items() if spec["t"] == "tensor"}
    rows = [{"name": name, "data": _tensor(spec, store)} for name, spec in specs.items()]
    file = str(Path(request["folder"], request["name"]))
    ms.save_checkpoint(rows, file, append_dict=texts or None)
    back = ms.load_checkpoint(file)
    for name, spec in specs.items():
        same = name in back and _bits(back[name]).tobytes() == store.get(spec["key"]).tobytes()
        if not same or list(back[name].shape) != spec["shape"]:
            raise OSError(f"{request['name']}: {name} was not written as it is")
    if back.keys() != entries.keys() or any(back[name] != text for name, text in texts.items()):
        raise OSError(f"{request['name']} does not hold what was written to it")
    return {"files": [request["name"]]}


def reload(net: Net, request: Payload) -> Payload:
    """Clear the weights, load ``file`` as users do, save the net to ``to``.

    What the net held before comes back in any case. ``{"left": names the file does not give,
    "unused": names the net does not take}``
    """
    start = {place: array(held_at(net, place)).copy() for place in parameters_of(net)}
    try:
        for place, numbers in start.items():
            put(net, place, np.zeros_like(numbers))
        entries = ms.load_checkpoint(request["file"])
        left, unused = ms.load_param_into_net(net.root, entries)
        ms.save_checkpoint(net.root, request["to"])
    finally:
        for place, numbers in start.items():
            put(net, place, numbers)
    return {"left": list(left), "unused": list(unused)}
