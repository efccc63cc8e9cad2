"""In: a converted file, a harness file, weights and inputs. Out: results and gradients.

Runs in the MindSpore worker; torch cannot be imported there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import mindspore as ms

from migrate.evidence.programs import together_text
from migrate.evidence.workers import MindSporeRun
from migrate.parity.cells import Net, array, dtype_name, held_at, open_net, put, tensor_of, tensors
from migrate.parity.exchange import Array, Spec, apply_layout, encode

Weight = tuple[str, str, str, Array]
Described = tuple[Spec, dict[int, Array]]


def load(path: Path) -> ModuleType:
    """Import a file under its own stem, so that a second file can import it by name."""
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if path.stem in sys.modules:
        return sys.modules[path.stem]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _described(value: Any) -> Described:
    """The description of a result, and its arrays; a dtype is described by its name."""
    arrays: dict[int, Array] = {}

    def tensor(item: Any) -> Spec | None:
        if isinstance(item, ms.Type):
            return {"t": "value", "v": dtype_name(item)}
        if not isinstance(item, ms.Tensor):
            return None
        key = len(arrays)
        arrays[key] = array(item)
        shape = [int(size) for size in item.shape]
        return {"t": "tensor", "key": key, "dtype": dtype_name(item.dtype), "shape": shape}

    return encode(value, tensor), arrays


@dataclass(frozen=True)
class Ready:
    """A run with everything in place: call ``function`` with ``given``, then look at the rest.

    ``names``: torch's names of the gradients that come back, empty for a plain forward.
    """

    function: Any
    given: Sequence[Any]
    names: tuple[str, ...]
    net: Net | None
    held: tuple[tuple[str, str], ...]


def run_probe(run: MindSporeRun) -> dict[str, Any]:
    """Result, gradients and buffers of one run.

    Gradients and buffers come back under torch's names.
    """
    if run.mode == "graph":
        return run_together([run])[0]
    ready = _ready(run)
    return _found(ready, ready.function(*ready.given))


def run_together(runs: Sequence[MindSporeRun]) -> list[dict[str, Any]]:
    """The same for several runs, in graph mode and as one graph."""
    every = [_ready(run) for run in runs]
    text = together_text([len(ready.given) for ready in every])
    name = f"together_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    path = runs[0].harness.with_name(f"{name}.py")
    if not path.exists():
        scratch = path.with_name(f"{name}.{os.getpid()}")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)  # another worker may need the same file now
    step = load(path).compiled(*(ready.function for ready in every))
    outputs = step(*(value for ready in every for value in ready.given))
    return [_found(ready, output) for ready, output in zip(every, outputs, strict=True)]


def _ready(run: MindSporeRun) -> Ready:
    ms.set_seed(20)
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True, jit_syntax_level=ms.STRICT)
    load(run.converted)
    made, probe = load(run.harness), run.probe
    values = [tensor_of(run.inputs[name], str(run.inputs[name].dtype)) for name in probe.names]
    net = _net(made.build(), run.weights, run.training, values) if probe.is_module else None
    held: list[tuple[str, str]] = []
    if net is not None and run.training:
        pairs = [(name, place) for name, place, _, _ in run.weights]
        held = [(name, place) for name, place in pairs if not _is_trained(net, place)]
    if not run.cotangents:
        forward = made.forward if net is None else made.forward(net.root)
        return Ready(forward, values, (), net, tuple(held))
    given = [*values, *(tensor_of(numbers, str(numbers.dtype)) for numbers in run.cotangents)]
    total = made.total if net is None else made.Total(net.root)
    trained = {}
    if net is not None:
        trained = {name: held_at(net, p) for name, p, _, _ in run.weights if _is_trained(net, p)}
        total.set_train(net.root.training)
    parameters = ms.ParameterTuple(list(trained.values())) if trained else None
    gradient = ms.value_and_grad(total, probe.floating or None, parameters, has_aux=True)
    names = (*(f"input[{i}]" for i in probe.floating), *trained)
    return Ready(gradient, given, names, net, tuple(held))


def _found(ready: Ready, output: Any) -> dict[str, Any]:
    result, gradients = output, []
    if ready.names:
        (_, result), gradients = output
    flat = _flat(gradients)
    if len(flat) != len(ready.names):
        raise RuntimeError(
            f"MindSpore gives {len(flat)} gradients where {len(ready.names)} were asked"
        )
    net = ready.net
    return {
        "result": _described(result),
        "gradients": {n: _described(value) for n, value in zip(ready.names, flat, strict=True)},
        "buffers": {name: _described(held_at(net, place)) for name, place in ready.held if net},
    }


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


def _is_trained(net: Net, place: str) -> bool:
    held = held_at(net, place)
    return isinstance(held, ms.Parameter) and bool(held.requires_grad)


def _net(root: Any, weights: Sequence[Weight], training: bool, values: Sequence[Any]) -> Net:
    net = open_net(root)
    held = {row["place"] for row in tensors(net)}
    if any(place not in held for _, place, _, _ in weights):
        root(*values)  # a lazy Cell gets its weights from its inputs
        net = open_net(root)
    root.set_train(training)
    _put(net, weights)
    return net


def _put(net: Net, weights: Sequence[Weight]) -> None:
    for name, place, layout, numbers in weights:
        changed = apply_layout(numbers, layout)
        try:
            held = held_at(net, place)
        except KeyError:
            raise LookupError(f"torch's {name} has no partner: there is no {place}") from None
        shape = tuple(int(size) for size in held.shape)
        if shape != changed.shape:
            raise LookupError(f"{name} is {changed.shape} in torch, {place} is {shape}")
        put(net, place, changed)
        if (array(held_at(net, place)).astype(changed.dtype) != changed).any():
            raise LookupError(f"{place}: the copied values do not read back")
