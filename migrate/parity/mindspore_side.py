"""Answer requests about MindSpore code, converted or written by hand, and about checkpoint files.

Runs as a process of its own, where converted code cannot import torch.
"""

from __future__ import annotations

import gc
import importlib.abc
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np

from migrate.parity import importing
from migrate.parity.cells import (
    Net,
    array,
    dtype_name,
    held_at,
    inventory,
    load,
    open_net,
    put,
    tensors,
)
from migrate.parity.discover import without_mode
from migrate.parity.exchange import Array, ArrayStore, Spec
from migrate.parity.importing import Tree
from migrate.parity.masks import choose_masks
from migrate.parity.messages import Emit, Payload, serve
from migrate.parity.ms_draws import recurrent_rates, share_draws, share_masks, silence
from migrate.parity.ms_gradients import gradients
from migrate.parity.ms_remedies import remedy
from migrate.parity.ms_script import run_script
from migrate.parity.ms_training import parameters_of, train
from migrate.parity.replay import fits, inner_calls, replay, replay_port, set_mode, trace


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


class NoTorch(importlib.abc.MetaPathFinder):
    """Makes every import of torch fail: converted code must run without it.

    What was converted may itself be called torchvision: then it is found in its own folder.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        root = getattr(ms.nn.Cell, "_torch2ms_root", "")
        if root and any(str(folder).startswith(root) for folder in path or ()):
            return None
        if fullname.partition(".")[0] not in ("torch", "torchvision", "torchaudio"):
            return None
        own = PathFinder.find_spec(fullname, [root]) if root and path is None else None
        if own is None:
            raise ModuleNotFoundError(f"{fullname} is not available to converted code")
        return own


@dataclass
class Bench:
    """The net that is being verified."""

    net: Net | None = None
    names: Mapping[str, Any] = field(default_factory=dict)

    @property
    def current(self) -> Net:
        if self.net is None:
            raise RuntimeError("no net was built")
        return self.net


def hello(request: Payload, emit: Emit) -> Payload:
    """Versions, and the device that is used from now on; raises where it is not to be had."""
    use_device(request.get("device", "CPU"))
    return {
        "mindspore": str(ms.__version__),
        "mindspore numpy": np.__version__,
        "python": platform.python_version(),
        "device": str(ms.get_context("device_target")),
    }


def use_device(name: str) -> None:
    """Have MindSpore compute there; a process that was started again is on its default."""
    if ms.get_context("device_target") != name:
        ms.set_device(name)


def build(bench: Bench, request: Payload, emit: Emit) -> Payload:
    """Import the code and build the net: its Cells, its tensors, the numbers it starts with.

    Converted code is a file of a tree, a port a module by its name.
    """
    use_device(request.get("device", "CPU"))
    bench.net = None
    gc.unfreeze()
    set_mode("pynative")
    port, note = "module" in request, ""
    if port:
        share_draws()
        module, root = importing.open_module(request["module"], request["folders"])
        ms.nn.Cell._torch2ms_root = str(root)
    else:
        if not any(isinstance(finder, NoTorch) for finder in sys.meta_path):
            sys.meta_path.insert(0, NoTorch())
        tree = Tree(Path(request["root"]), request["package"])
        importing.forget(Path(getattr(ms.nn.Cell, "_torch2ms_root", tree.root)))
        ms.nn.Cell._torch2ms_root = str(tree.root)
        root = tree.root
        module, note = importing.load_anyhow(tree, request["file"])
    ms.set_seed(request["seed"])
    made = importing.made(module, without_mode(request["build"]), ms.nn.Cell)
    rates = recurrent_rates(made)
    silence(made)
    bench.net, bench.names = open_net(made, root, port), vars(module)
    gc.collect()
    gc.freeze()  # MindSpore collects garbage at every compilation; what is here now stays
    held = tensors(bench.net)
    if port:
        store = ArrayStore(Path(request["folder"]))
        store.folder.mkdir(parents=True, exist_ok=True)
        for row in held:
            if not row["trained"]:
                row["start"] = store.put(array(held_at(bench.net, row["place"])))
    return {"cells": inventory(bench.net, root), "tensors": held, "note": note[:300],
            "rates": rates}  # fmt: skip


def script(request: Payload, emit: Emit) -> Payload:
    """Run a converted script: `ms_script.run_script`, without torch."""
    use_device(request.get("device", "CPU"))
    ms.nn.Cell._torch2ms_root = request["root"]
    sys.meta_path.insert(0, NoTorch())
    return run_script(request, emit)


def main() -> None:
    """Serve until stdin ends."""
    bench = Bench()
    sys.argv = ["torch2ms"]
    ms.set_context(pynative_synchronize=True, jit_syntax_level=ms.STRICT)
    share_masks()
    importing.track(ms.nn.Cell, arguments=True)
    serve({
        "script": script,
        "hello": hello, "masks": choose_masks,
        "build": lambda request, emit: build(bench, request, emit),
        "load": lambda request, emit: load(
            bench.current, request["parts"], Path(request["folder"])
        ),
        "read_file": lambda request, emit: read_file(request),
        "write_file": lambda request, emit: write_file(request),
        "reload": lambda request, emit: reload(bench.current, request),
        "fits": lambda request, emit: fits(bench.current, request, emit),
        "trace": lambda request, emit: trace(bench.current, request, emit),
        "forward": lambda request, emit: forward(bench.current, request, emit),
        "gradients": lambda request, emit: gradients(bench.current, request, emit),
        "inner_calls": lambda request, emit: inner_calls(bench.current, request),
        "remedy": lambda request, emit: remedy(bench.current, request, emit),
        "training": lambda request, emit: train(bench.current, bench.names, request, emit),
    })  # fmt: skip


def forward(net: Net, request: Payload, emit: Emit) -> Payload:
    """Compare all recorded calls of a net with torch's."""
    return (replay_port if net.port else replay)(net, request, emit)


if __name__ == "__main__":
    main()
