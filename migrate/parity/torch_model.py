"""Prepare a torch model that was built: weights at work, its tensors as files, operators declared.

Zeros and ones hide errors (a bias of zero, a scale of one, moving statistics of 0 and 1), and so
do weights so small that only biases arrive at the output. All draws come from one seed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from migrate.parity.exchange import ArrayStore
from migrate.parity.torch_values import array, dtype_name

Row = dict[str, Any]


def named(model: torch.nn.Module) -> list[tuple[str, torch.Tensor, str]]:
    """Every parameter and buffer under each of its names: (name, tensor, kind)."""
    parameters = [(n, t, "parameter") for n, t in model.named_parameters(remove_duplicate=False)]
    buffers = [(n, t, "buffer") for n, t in model.named_buffers(remove_duplicate=False)]
    return [*parameters, *buffers]


def initial(model: torch.nn.Module, other: torch.nn.Module) -> dict[str, Row]:
    """How each tensor starts: ``values`` where two builds with different seeds agree, else the
    standard deviation of its draw (``spread``).
    """
    others = {name: tensor for name, tensor, _ in named(other)}
    found: dict[str, Row] = {}
    for name, tensor, _ in named(model):
        twin = others.get(name)
        if twin is not None and twin.shape == tensor.shape and torch.equal(twin, tensor):
            found[name] = {"values": tensor.detach().clone()}
        elif tensor.is_floating_point() and tensor.numel() > 1:
            found[name] = {"spread": float(tensor.detach().double().std())}
    return found


def write_weights(model: torch.nn.Module, before: dict[str, Row], folder: Path) -> list[Row]:
    """Write the arrays to a folder; one row a tensor, in order, with ``tied`` for shared ones."""
    folder.mkdir(parents=True, exist_ok=True)
    store = ArrayStore(folder)
    first: dict[int, str] = {}
    rows: list[Row] = []
    kept = model.state_dict().keys()
    for name, tensor, kind in named(model):
        tied = first.setdefault(id(tensor), name)
        start = before.get(name, {})
        rows.append({
            "key": name, "kind": kind, "shape": list(tensor.shape), "dtype": dtype_name(tensor),
            "array": store.put(array(tensor)), "tied": "" if tied == name else tied,
            "trained": bool(tensor.requires_grad), "saved": name in kept,
            "spread": start.get("spread"),
            "start": store.put(array(start["values"])) if "values" in start else "",
        })  # fmt: skip
    return rows


DENSE = (
    torch.nn.Linear,
    torch.nn.modules.conv._ConvNd,
)


def enliven(model: torch.nn.Module, seed: int, run: Callable[[], object]) -> None:
    """Redraw constant and tiny weights, then set norm statistics near those of the activations.

    ``run`` calls the model on its inputs; it is used once, in train mode.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.is_floating_point():
                    _redraw(module, name, parameter, generator)
        _calibrate(model, generator, run)


def _normal(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(like.shape, generator=generator).to(like.dtype)


def _redraw(
    module: torch.nn.Module, name: str, tensor: torch.Tensor, generator: torch.Generator
) -> None:
    if tensor.numel() == 0:
        return
    low, high = float(tensor.min()), float(tensor.max())
    if isinstance(module, DENSE) and name == "weight" and tensor.ndim > 1:
        _rescale(module, tensor, generator, constant=low == high)
    elif low == high and abs(low) < 0.01:
        scale = 0.1 if tensor.ndim < 2 else 1.0 / math.sqrt(tensor.shape[-1])
        tensor.copy_(scale * _normal(tensor, generator) + (0.2 if low else 0.0))
    elif low == high:
        spread = 0.6 * torch.rand(tensor.shape, generator=generator) - 0.3
        tensor.mul_(1.0 + spread.to(tensor.dtype))


def _rescale(
    module: torch.nn.Module, tensor: torch.Tensor, generator: torch.Generator, constant: bool
) -> None:
    """Keep the drawn direction; bring the root mean square near that of a He initialisation."""
    transposed = isinstance(module, torch.nn.modules.conv._ConvTransposeNd)
    fan_in = tensor.numel() // tensor.shape[1 if transposed else 0]
    wanted = math.sqrt(2.0 / max(fan_in, 1))
    if constant:
        tensor.copy_(_normal(tensor, generator))
    size = float(tensor.double().pow(2).mean().sqrt())
    if size == 0.0 or not wanted / 3 < size < wanted * 3:
        tensor.mul_(wanted / size if size else 1.0)


def _calibrate(
    model: torch.nn.Module, generator: torch.Generator, run: Callable[[], object]
) -> None:
    """Let one train-mode run fill the statistics, then move them a little off those values."""
    norms = [
        m for m in model.modules() if isinstance(getattr(m, "running_var", None), torch.Tensor)
    ]
    if not norms:
        return
    momenta = [(norm, getattr(norm, "momentum", None)) for norm in norms]
    modes = [(module, module.training) for module in model.modules()]
    model.train()
    for norm in norms:
        norm.momentum = 1.0
    with contextlib.suppress(RuntimeError, ValueError):
        run()  # one value a channel has no variance: the drawn statistics below still differ
    for norm, momentum in momenta:
        norm.momentum = momentum
        mean, variance = norm.running_mean, norm.running_var
        assert isinstance(mean, torch.Tensor) and isinstance(variance, torch.Tensor)
        bad = ~(torch.isfinite(variance) & torch.isfinite(mean))
        mean[bad], variance[bad] = 0.0, 1.0
        variance.clamp_(min=1e-4)
        mean.add_(0.1 * variance.sqrt() * _normal(mean, generator))
        variance.mul_(
            0.8 + 0.4 * torch.rand(variance.shape, generator=generator).to(variance.dtype)
        )
        tracked = getattr(norm, "num_batches_tracked", None)
        if isinstance(tracked, torch.Tensor):
            tracked.zero_()
    for module, training in modes:
        module.training = training


SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def is_missing_operator(error: BaseException) -> bool:
    """Whether an import failed because torchvision's operators are not there."""
    return isinstance(error, RuntimeError) and "operator torchvision::" in str(error)


def declare() -> object:
    """Declare the operators; they stay for as long as the answer is kept."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        library.define(schema)
    return library
