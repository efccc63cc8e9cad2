"""In: requests of the verifying process. Out: answers about a MindSpore net that somebody wrote."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import mindspore as ms

from migrate.parity import importing
from migrate.parity.cells import held_at, inventory, open_net, tensors
from migrate.parity.channel import Emit, Payload, serve
from migrate.parity.exchange import ArrayStore
from migrate.parity.hand.forward import forward, trace
from migrate.parity.hand.gradients import gradients
from migrate.parity.hand.parts import load_parts
from migrate.parity.masks import choose_masks
from migrate.parity.mindspore_side import Bench, hello, use_device
from migrate.parity.ms_draws import share_draws, share_masks, silence
from migrate.parity.ms_remedies import remedy
from migrate.parity.ms_values import array
from migrate.parity.replay import inner_calls, set_mode


def build(bench: Bench, request: Payload, emit: Emit) -> Payload:
    """Import the module and build the net: its Cells, its tensors, the numbers it starts with."""
    use_device(request.get("device", "CPU"))
    bench.net = None
    gc.unfreeze()
    set_mode("pynative")
    module, root_folder = importing.open_module(request["module"], request["folders"])
    ms.nn.Cell._torch2ms_root = str(root_folder)
    ms.set_seed(request["seed"])
    made = importing.made(module, request["build"], ms.nn.Cell)
    rates = recurrent_rates(made)
    silence(made)
    bench.net = open_net(made)
    bench.net.source = str(root_folder)
    gc.collect()
    gc.freeze()  # MindSpore collects garbage at every compilation; what is here now stays
    store = ArrayStore(Path(request["folder"]))
    store.folder.mkdir(parents=True, exist_ok=True)
    held = tensors(bench.net)
    for row in held:
        if not row["trained"]:
            row["start"] = store.put(array(held_at(bench.net, row["place"])))
    return {"cells": inventory(bench.net, root_folder), "tensors": held, "rates": rates}


def recurrent_rates(net: Any) -> dict[str, float]:
    """The dropout between the layers of recurrent Cells, which is silenced later."""
    return {
        path: float(cell.dropout_op.p) for path, cell in net.cells_and_names()
        if hasattr(cell, "w_ih_list") and isinstance(getattr(cell, "dropout_op", None),
                                                     ms.nn.Dropout)
    }  # fmt: skip


def main() -> None:
    """Serve until stdin ends."""
    bench = Bench()
    sys.argv = ["torch2ms"]
    ms.set_context(pynative_synchronize=True, jit_syntax_level=ms.STRICT)
    share_masks()
    share_draws()
    importing.track(ms.nn.Cell, arguments=True)
    serve({
        "hello": hello, "masks": choose_masks,
        "build": lambda request, emit: build(bench, request, emit),
        "load": lambda request, emit: {
            "failed": load_parts(bench.current, request["parts"], Path(request["folder"]))
        },
        "trace": lambda request, emit: trace(bench.current, request, emit),
        "forward": lambda request, emit: forward(bench.current, request, emit),
        "gradients": lambda request, emit: gradients(bench.current, request, emit),
        "inner_calls": lambda request, emit: inner_calls(bench.current, request),
        "remedy": lambda request, emit: remedy(bench.current, request, emit),
    })  # fmt: skip


if __name__ == "__main__":
    main()
