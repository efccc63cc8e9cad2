"""In: a converted file, a harness file, weights and inputs. Out: results and gradients.

Runs in the MindSpore worker; torch cannot be imported there.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import mindspore as ms

from migrate.evidence.sources import Probe
from migrate.parity.cells import Net, held_at, open_net, put, tensors
from migrate.parity.exchange import Array, Spec, encode
from migrate.parity.layout import apply_layout
from migrate.parity.ms_values import array, dtype_name, tensor_of

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


def run_probe(
    converted: Path,
    harness: Path,
    probe: Probe,
    inputs: Mapping[str, Array],
    weights: Sequence[Weight],
    cotangents: Sequence[Array],
    mode: str,
    training: bool,
) -> dict[str, Any]:
    """Result, gradients and buffers of one probe in one mode.

    ``weights``: (torch name, place in the Cell, change of shape, numbers). Gradients and buffers
    come back under torch's names.
    """
    ms.set_seed(20)
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True, jit_syntax_level=ms.STRICT)
    load(converted)
    made = load(harness)
    values = [tensor_of(inputs[name], str(inputs[name].dtype)) for name in probe.names]
    net = _net(made.build(), weights, training, values) if probe.is_module else None
    found: dict[str, Any] = {"gradients": {}, "buffers": {}}
    if cotangents:
        given = [*values, *(tensor_of(numbers, str(numbers.dtype)) for numbers in cotangents)]
        result, found["gradients"] = _gradients(made, net, probe, given, weights, mode)
    else:
        forward = made.forward if net is None else made.forward(net.root)
        result = (made.compiled_forward(forward) if mode == "graph" else forward)(*values)
    found["result"] = _described(result)
    if net is not None and training:
        held = [(name, place) for name, place, _, _ in weights if not _is_trained(net, place)]
        found["buffers"] = {name: _described(held_at(net, place)) for name, place in held}
    return found


def _gradients(
    made: Any,
    net: Net | None,
    probe: Probe,
    given: Sequence[Any],
    weights: Sequence[Weight],
    mode: str,
) -> tuple[Any, dict[str, Described]]:
    """The result, and the gradients of its weighted sum by input and by torch's weight names."""
    trained = {}
    total = made.total if net is None else made.Total(net.root)
    if net is not None:
        trained = {name: held_at(net, p) for name, p, _, _ in weights if _is_trained(net, p)}
        total.set_train(net.root.training)
    parameters = ms.ParameterTuple(list(trained.values())) if trained else None
    gradient = ms.value_and_grad(total, probe.floating or None, parameters, has_aux=True)
    step = made.compiled_gradient(gradient) if mode == "graph" else gradient
    (_, result), gradients = step(*given)
    flat = _flat(gradients)
    names = [f"input[{i}]" for i in probe.floating] + list(trained)
    if len(flat) != len(names):
        raise RuntimeError(f"MindSpore gives {len(flat)} gradients where {len(names)} were asked")
    return result, {name: _described(value) for name, value in zip(names, flat, strict=True)}


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
