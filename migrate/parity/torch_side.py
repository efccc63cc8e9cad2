"""In: requests of the verifying process. Out: answers about the original torch source.

Runs as a process of its own, in the user's torch environment: needs torch and numpy only.
"""

from __future__ import annotations

import ast
import inspect
import math
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from migrate.parity import importing
from migrate.parity.channel import Emit, Payload, serve
from migrate.parity.discover import candidates
from migrate.parity.importing import Tree
from migrate.parity.masks import choose_masks
from migrate.parity.noise import nudge_model
from migrate.parity.request import InputSpec, parse_input
from migrate.parity.torch_draws import Draws, recurrent_rates, share_masks, silence
from migrate.parity.torch_files import compare_state, read_file, save_state, write_file
from migrate.parity.torch_forward import CONTAINERS, record
from migrate.parity.torch_gradients import record_gradients
from migrate.parity.torch_inputs import find_inputs, value
from migrate.parity.torch_model import declare, enliven, initial, is_missing_operator, write_weights
from migrate.parity.torch_record import Twins, inner_calls
from migrate.parity.torch_training import Task, record_training
from migrate.parity.torch_values import change


@dataclass
class Bench:
    """The model that is being verified, and where its source lies."""

    twins: Twins | None = None
    root: Path = Path()
    names: Mapping[str, Any] = field(default_factory=dict)
    operators: object = None
    draws: Draws = field(default_factory=Draws)

    @property
    def model(self) -> Twins:
        if self.twins is None:
            raise RuntimeError("no model was built")
        return self.twins


def hello(request: Payload, emit: Emit) -> Payload:
    return {
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "torch python": platform.python_version(),
        "torch threads": str(torch.get_num_threads()),
    }


def find(bench: Bench, request: Payload, emit: Emit) -> Payload:
    """Import a file and name the models in it: ``{"found": [{name, build, reason}]}``."""
    tree, module = _load(bench, request)
    text = (tree.root / request["file"]).read_bytes()
    classes = {
        name for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, torch.nn.Module)
        and value.__module__ == module.__name__
    }  # fmt: skip
    found = candidates(ast.parse(text), frozenset(classes))
    return {"found": [{"name": c.name, "build": c.build, "reason": c.reason} for c in found]}


def _load(bench: Bench, request: Payload) -> tuple[Tree, Any]:
    if "module" in request:
        bench.draws.share()
        module, folder = importing.open_module(request["module"], request["folders"])
        torch.nn.Module._torch2ms_root = str(folder)
        return Tree(folder), module
    tree = Tree(Path(request["root"]), request["package"])
    importing.forget(Path(getattr(torch.nn.Module, "_torch2ms_root", tree.root)))
    torch.nn.Module._torch2ms_root = str(tree.root)
    try:
        return tree, importing.load(tree, request["file"])
    except RuntimeError as error:
        if bench.operators is not None or not is_missing_operator(error):
            raise
        bench.operators = declare()
        return tree, importing.load(tree, request["file"])


def build(bench: Bench, request: Payload, emit: Emit) -> Payload:
    """Build the model and its twins, find inputs, write the weights to a folder.

    Answers modules (path, classes, place), tensors (key, kind, shape) and the inputs that work.
    Without ``runs`` the model is only built. With ``half`` one in half precision stays so.
    """
    bench.twins = None
    tree, module = _load(bench, request)
    bench.root, bench.names = tree.root, vars(module)
    rates: dict[str, float] = {}

    def make(seed: int = request["seed"]) -> torch.nn.Module:
        torch.manual_seed(seed)
        made = importing.made(module, request["build"], torch.nn.Module)
        rates.update(recurrent_rates(made))
        silence(made)
        return made if request.get("half") and _is_half(made) else made.float()

    plain = make()
    specs: tuple[InputSpec, ...] = ()
    before: dict[str, Any] = {}
    if request.get("runs", True):
        before = initial(plain, make(request["seed"] + 1))
        given = tuple(parse_input(text) for text in request["inputs"])
        specs, arguments = find_inputs(plain, given, request["seed"])
        args, kwargs = arguments
        enliven(plain, request["seed"], lambda: plain(*change(args, torch.clone), **kwargs))
        bench.twins = _twins(plain, make, arguments, request["seed"])
    tensors = write_weights(plain, before, Path(request["folder"]))
    return {
        "inputs": [spec.text for spec in specs],
        "modules": [_module(path, m, tree.root) for path, m in plain.named_modules()],
        "tensors": tensors,
        "rates": rates,
    }


def _is_half(model: torch.nn.Module) -> bool:
    dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
    return bool(dtypes) and dtypes <= {torch.float16, torch.bfloat16}


def _twins(
    plain: torch.nn.Module, make: Callable[[], torch.nn.Module], arguments: Any, seed: int
) -> Twins:
    others = [make(), make()]
    buffers = {name: tensor.detach().clone() for name, tensor in plain.named_buffers()}
    for other in others:
        other.load_state_dict(plain.state_dict())
        for name, tensor in other.named_buffers():
            tensor.detach().copy_(buffers[name])
    double, nudged = others[0].double(), others[1]
    nudge_model(nudged, seed)
    return Twins(plain, double, nudged, arguments, seed, buffers)


def _module(path: str, module: torch.nn.Module, root: Path) -> Payload:
    file, line = importing.place(module, root)
    settings = {
        name: value for name, value in module.__dict__.items()
        if not name.startswith("_") and _is_setting(value)
    }  # fmt: skip
    return {
        "path": path, "class": type(module).__name__, "file": file, "line": line,
        "classes": [f"{c.__module__}.{c.__qualname__}" for c in type(module).__mro__[:-2]],
        "container": isinstance(module, CONTAINERS), "settings": settings,
    }  # fmt: skip


def _is_setting(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_setting(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (bool, int, str))


def training(bench: Bench, request: Payload) -> Payload:
    """Train the model: `record_training`."""
    specs = [parse_input(text) for text in request["targets"]]
    drawn = [value(spec, bench.model.seed + 100 + n) for n, spec in enumerate(specs)]
    task = Task(bench.names, request["loss"], request["optimizer"], tuple(drawn), request["steps"])
    return record_training(bench.model, task, Path(request["folder"]))


def main() -> None:
    """Serve until stdin ends."""
    bench = Bench()
    torch.backends.mha.set_fastpath_enabled(False)  # else children of attention never run
    share_masks()
    importing.track(torch.nn.Module)
    sys.argv = ["torch2ms"]
    serve({
        "hello": hello, "masks": choose_masks,
        "find": lambda request, emit: find(bench, request, emit),
        "build": lambda request, emit: build(bench, request, emit),
        "read_file": lambda request, emit: read_file(request),
        "write_file": lambda request, emit: write_file(request),
        "save_state": lambda request, emit: save_state(bench.model.plain, request),
        "compare_state": lambda request, emit: compare_state(bench.model.plain, request),
        "record": lambda request, emit: record(
            bench.model, request["training"], Path(request["folder"]), emit,
            request.get("factor", 1.0), request.get("root_only", False),
        ),
        "gradients": lambda request, emit: record_gradients(
            bench.model, Path(request["folder"]), request["local"], emit
        ),
        "inner_calls": lambda request, emit: inner_calls(bench.model, bench.root, request),
        "training": lambda request, emit: training(bench, request),
    })  # fmt: skip


if __name__ == "__main__":
    main()
