"""In: requests of the verifying process. Out: answers about the converted MindSpore code.

Runs as a process of its own, where torch cannot be imported.
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
from migrate.parity.cells import Net, inventory, load, open_net, tensors
from migrate.parity.channel import Emit, Payload, serve
from migrate.parity.discover import without_mode
from migrate.parity.importing import Tree
from migrate.parity.ms_draws import share_masks, silence
from migrate.parity.ms_files import read_file, reload, write_file
from migrate.parity.ms_gradients import replay_gradients
from migrate.parity.ms_remedies import remedy
from migrate.parity.ms_training import replay_training
from migrate.parity.replay import inner_calls, replay, set_mode


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
    """Import the converted file and build the net: its Cells and its tensors."""
    use_device(request.get("device", "CPU"))
    bench.net = None
    gc.unfreeze()
    set_mode("pynative")
    tree = Tree(Path(request["root"]), request["package"])
    importing.forget(Path(getattr(ms.nn.Cell, "_torch2ms_root", tree.root)))
    ms.nn.Cell._torch2ms_root = str(tree.root)
    module, note = importing.load_anyhow(tree, request["file"])
    ms.set_seed(request["seed"])
    root = eval(without_mode(request["build"]), vars(module))  # the user's own expression
    if not isinstance(root, ms.nn.Cell):
        raise TypeError(f"{request['build']} gives {type(root).__name__}, not a Cell")
    silence(root)
    bench.net, bench.names = open_net(root), vars(module)
    bench.net.source = str(tree.root)
    gc.collect()
    gc.freeze()  # MindSpore collects garbage at every compilation; what is here now stays
    cells = inventory(bench.net, tree.root)
    return {"cells": cells, "tensors": tensors(bench.net), "note": note[:300]}


def main() -> None:
    """Serve until stdin ends."""
    bench = Bench()
    sys.meta_path.insert(0, NoTorch())
    sys.argv = ["torch2ms"]
    ms.set_context(pynative_synchronize=True, jit_syntax_level=ms.STRICT)
    share_masks()
    importing.track(ms.nn.Cell, arguments=True)
    serve({
        "hello": hello,
        "build": lambda request, emit: build(bench, request, emit),
        "load": lambda request, emit: dict(zip(
            ("failed", "starts"),
            load(bench.current, request["pairs"], Path(request["folder"])),
            strict=True,
        )),
        "read_file": lambda request, emit: read_file(request),
        "write_file": lambda request, emit: write_file(request),
        "reload": lambda request, emit: reload(bench.current, request),
        "replay": lambda request, emit: replay(bench.current, request, emit),
        "gradients": lambda request, emit: replay_gradients(bench.current, request, emit),
        "inner_calls": lambda request, emit: inner_calls(bench.current, request),
        "remedy": lambda request, emit: remedy(bench.current, request, emit),
        "training": lambda request, emit: replay_training(
            bench.current, bench.names, request, emit
        ),
    })  # fmt: skip


if __name__ == "__main__":
    main()
