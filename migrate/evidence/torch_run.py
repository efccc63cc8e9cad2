"""In: torch source of probes and inputs. Out: results, gradients and buffers with their limits.

Runs in the torch worker. Each probe runs in float32, in float64 (the reference), once with inputs
and weights nudged by half a unit in the last place, and once with torch's kernels made as coarse
as MindSpore's where one of those ran (see migrate.parity.noise).
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from migrate.evidence.programs import Probe
from migrate.parity.compare import floor, relative_error
from migrate.parity.exchange import Array, Spec, encode
from migrate.parity.noise import KernelNoise, OperatorLog, nudge, nudge_model
from migrate.parity.torch_gradients import differentiable, heads_of
from migrate.parity.torch_model import declare, enliven, is_missing_operator
from migrate.parity.torch_record import array, cotangent, dtype_name, leaf, tensors

SEED = 20
# The largest error of a kernel over its root mean square: what a lone number may be off by.
LONE = 3.0
Pick = Callable[["Taken"], Sequence[torch.Tensor]]


@dataclass
class Taken:
    """One run of a probe: its result and everything that is compared besides."""

    result: Any
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    buffers: dict[str, torch.Tensor] = field(default_factory=dict)
    heads: tuple[str, ...] = ()


def load(path: Path, name: str) -> ModuleType:
    """Import a file under a name of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except RuntimeError as error:
        if not is_missing_operator(error):
            raise
        module.operators = declare()  # type: ignore[attr-defined]
        spec.loader.exec_module(module)
    return module


def run_probe(
    source: Path, probe: Probe, inputs: Mapping[str, Array], training: bool, gradient: bool
) -> dict[str, Any]:
    """Everything that the other side is compared with, as plain values and numpy arrays."""
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    module = load(source, f"torch_{source.stem}")
    given = [torch.from_numpy(np.array(inputs[name])) for name in probe.names]
    made = getattr(module, probe.name)
    model = made() if probe.is_module else None
    if model is not None:
        model.eval()
        if any(torch.nn.parameter.is_lazy(one) for one in model.parameters()):
            model(*[x.clone() for x in given])  # a lazy Module gets its weights from its inputs
        enliven(model, SEED, lambda: model(*[x.clone() for x in given]))
        model.train(training)

    def call(how: Any) -> Taken:
        return _take(made, model, given, probe, how, gradient)

    return _measured(call, model)


def _measured(call: Callable[[Any], Taken], model: Any) -> dict[str, Any]:
    plain = call(_same)
    random = _differs(plain, call(_reseeded))
    wide, why = _reference(call, plain)
    log = OperatorLog(SEED)
    with log:
        nudged = call(_nudged)
    coarse = None
    if log.coarse:
        with KernelNoise(SEED):
            coarse = call(_same)
    arrays: list[Array] = []
    reduction = log.reduction

    def limits(pick: Pick, index: int) -> Spec:
        mine, exact = pick(plain)[index], pick(wide)[index]
        reference = within_range(array(exact), array(mine))
        described = leaf(mine, str(len(arrays)))
        arrays.append(reference)
        if not (mine.is_floating_point() or mine.is_complex()) or random:
            return {**described, "own": 0.0, "coarse": 0.0, "floor": 0.0, "random": random}
        errors = [relative_error(array(pick(run)[index]), reference) for run in (plain, nudged)]
        rough = relative_error(array(pick(coarse)[index]), reference) if coarse else 0.0
        rough *= LONE if reference.size == 1 else 1.0
        kept = floor(dtype_name(mine), reduction)
        return {**described, "own": max(errors), "coarse": rough, "floor": kept}

    return {
        "result": _described(plain.result, limits),
        "gradients": {name: limits(_gradient(name), 0) for name in plain.gradients},
        "buffers": {name: limits(_buffer(name), 0) for name in plain.buffers},
        "arrays": arrays,
        "heads": plain.heads,
        "cotangents": [array(c) for c in _cotangents(plain)],
        "state": {} if model is None else {k: array(v) for k, v in model.state_dict().items()},
        "classes": _classes(model),
        "random": random,
        "reference": why,
    }


def within_range(reference: Array, plain: Array) -> Array:
    """The float64 numbers, but torch's own where float32 cannot hold them or is not finite."""
    if plain.dtype != np.float32 or reference.dtype != np.float64 or plain.shape != reference.shape:
        return reference
    beyond = ~np.isfinite(plain) | (np.abs(reference) > np.finfo(np.float32).max)
    return np.asarray(np.where(beyond, plain.astype(np.float64), reference))


def _gradient(name: str) -> Pick:
    return lambda run: [run.gradients[name]]


def _buffer(name: str) -> Pick:
    return lambda run: [run.buffers[name]]


def _described(value: Any, limits: Callable[..., Spec]) -> Spec:
    found = 0

    def tensor(item: Any) -> Spec | None:
        nonlocal found
        if isinstance(item, torch.dtype):
            return {"t": "value", "v": str(item).removeprefix("torch.")}
        if isinstance(item, torch.device):
            return {"t": "value", "v": None}
        if not isinstance(item, torch.Tensor):
            return None
        found += 1
        return limits(lambda run: tensors(run.result), found - 1)

    return encode(value, tensor)


# How a run is changed: each takes the tensors and the model, and gives those that are used.
def _same(values: list[torch.Tensor], model: Any) -> tuple[list[torch.Tensor], Any]:
    return values, model


def _reseeded(values: list[torch.Tensor], model: Any) -> tuple[list[torch.Tensor], Any]:
    torch.manual_seed(SEED + 1)
    return values, model


def _nudged(values: list[torch.Tensor], model: Any) -> tuple[list[torch.Tensor], Any]:
    generator = torch.Generator().manual_seed(SEED)
    if model is not None:
        nudge_model(model, SEED)
    return [nudge(value, generator) for value in values], model


def _widened(values: list[torch.Tensor], model: Any) -> tuple[list[torch.Tensor], Any]:
    return [_wide(value) for value in values], None if model is None else model.double()


def _wide(value: torch.Tensor) -> torch.Tensor:
    if value.is_complex():
        return value.to(torch.complex128)
    return value.double() if value.dtype is torch.float32 else value


def _reference(call: Callable[[Any], Taken], plain: Taken) -> tuple[Taken, str]:
    """The float64 run; the float32 one where the call itself fixes float32."""
    torch.set_default_dtype(torch.float64)
    try:
        wide = call(_widened)
    except (RuntimeError, TypeError, ValueError) as error:
        return plain, f"float32: {error}".splitlines()[0][:120]
    finally:
        torch.set_default_dtype(torch.float32)
    shapes = [tuple(x.shape) for x in tensors(wide.result)]
    if shapes != [tuple(x.shape) for x in tensors(plain.result)]:
        return plain, "float32: the float64 run has other shapes"
    if wide.gradients.keys() != plain.gradients.keys():
        return plain, "float32: the float64 run has other gradients"
    return wide, "float64"


def _differs(one: Taken, other: Taken) -> bool:
    """Whether another seed gives another result: a random operator ran."""
    pairs = zip(tensors(one.result), tensors(other.result), strict=False)
    return any(
        a.shape == b.shape and not torch.equal(a, b) and not _both_nan(a, b) for a, b in pairs
    )


def _both_nan(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.is_floating_point() and bool(torch.allclose(a, b, rtol=0, atol=0, equal_nan=True))


def _take(
    made: Any, base: Any, given: list[torch.Tensor], probe: Probe, how: Any, gradient: bool
) -> Taken:
    """One run on fresh copies of inputs and model."""
    torch.manual_seed(SEED)
    values, model = how([value.clone() for value in given], copy.deepcopy(base))
    leaves_ = [values[i].detach().requires_grad_(gradient) for i in probe.floating]
    for position, value in zip(probe.floating, leaves_, strict=True):
        values[position] = value.clone() if gradient else value
    result = made(*values) if model is None else model(*values)
    taken = Taken(result)
    if model is not None:
        taken.buffers = {name: value.detach().clone() for name, value in model.named_buffers()}
    if not gradient:
        return taken
    wanted = {f"input[{i}]": x for i, x in zip(probe.floating, leaves_, strict=True)}
    if model is not None:
        wanted.update({k: v for k, v in model.named_parameters() if v.requires_grad})
    heads = differentiable(result)
    taken.heads = tuple(heads_of(result))
    if heads and wanted:
        total = sum((h * c).sum() for h, c in zip(heads, _drawn(heads), strict=True))
        found = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
        zeros = (torch.zeros_like(v) for v in wanted.values())
        taken.gradients = {
            name: z if g is None else g for (name, g, z) in zip(wanted, found, zeros, strict=True)
        }
    else:
        taken.heads = ()
    return taken


def _drawn(heads: list[torch.Tensor]) -> list[torch.Tensor]:
    return [cotangent(head, SEED + i) for i, head in enumerate(heads)]


def _cotangents(taken: Taken) -> list[torch.Tensor]:
    return _drawn(differentiable(taken.result)) if taken.heads else []


def _classes(model: Any) -> dict[str, list[str]]:
    """Module path -> its class and the bases of it, by the name of the defining module."""
    if model is None:
        return {}
    return {
        path: [f"{c.__module__}.{c.__qualname__}" for c in type(one).__mro__[:-1]]
        for path, one in model.named_modules()
    }
