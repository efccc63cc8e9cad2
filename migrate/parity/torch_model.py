"""Prepare a torch model: inputs on which it runs, weights at work, its tensors as files.

Zeros and ones hide errors (a bias of zero, a scale of one, moving statistics of 0 and 1), and so
do weights so small that only biases arrive at the output. All draws come from one seed. Needs
torch and numpy only: it runs in the user's torch environment.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from migrate.parity.exchange import ArrayStore
from migrate.parity.messages import describe
from migrate.parity.request import InputSpec, parse_input
from migrate.parity.torch_record import array, change, dtype_name

Row = dict[str, Any]


def named(model: torch.nn.Module) -> list[tuple[str, torch.Tensor, str]]:
    """Return every parameter and buffer under each of its names: (name, tensor, kind)."""
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
    """Return whether an import failed because torchvision's operators are not there."""
    return isinstance(error, RuntimeError) and "operator torchvision::" in str(error)


def declare() -> object:
    """Declare the operators; they stay for as long as the answer is kept."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        library.define(schema)
    return library


SIZE_NAMES = ("img_size", "image_size", "input_size", "resolution")
TEXT_NAMES = ("token", "ids", "idx", "index", "indices", "label", "target", "word", "src", "tgt")
MOST = 60


def proposals(model: torch.nn.Module) -> Iterator[tuple[str, ...]]:
    """Descriptions of all required inputs, most plausible first, at most MOST of them."""
    names = required(model)
    if not names:
        yield ()
        return
    firsts = list(dict.fromkeys(itertools.chain.from_iterable(_layers(model))))
    firsts += ["4x3x32x32", "2x3x64x64", "2x3x224x224", "2x8x16", "2x16", "4x1x28x28"]
    tried = 0
    for first in dict.fromkeys(firsts):
        rests = [_alternatives(name, first) for name in names[1:]]
        for rest in itertools.islice(itertools.product(*rests), 12):
            yield (first, *rest)
            tried += 1
            if tried >= MOST:
                return


def required(model: torch.nn.Module) -> list[str]:
    """Return names of forward's parameters that must be given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(model.forward).parameters.values()
    names = [p.name for p in parameters if p.kind in kinds and p.default is p.empty]
    if names or not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return names
    return ["x"]


def _alternatives(name: str, first: str) -> list[str]:
    """Return what another required argument may be, given the first input."""
    rows = first.split(":")[0].split("x")[0]
    if "mask" in name:
        return ["py:None", first]
    if name in ("t", "time", "timestep", "timesteps", "step"):
        return [f"{rows}:int64<100", rows, first]
    if any(part in name.lower() for part in TEXT_NAMES):
        return [first, f"{rows}:int64<2", f"{rows}x8:int64<2"]
    return [first, "py:None", rows]


def _layers(model: torch.nn.Module) -> Iterator[list[str]]:
    sizes = [s for s in _declared_sizes(model) if 8 <= s <= 1024]
    seen = 0
    for module in model.modules():
        found = _admitted(module, sizes)
        if found:
            seen += 1
            yield found
        if seen >= 4:
            return


def _declared_sizes(model: torch.nn.Module) -> list[int]:
    found: list[int] = []
    for module in itertools.islice(model.modules(), 40):
        for name in SIZE_NAMES:
            value: Any = module.__dict__.get(name)
            value = value[-1] if isinstance(value, (tuple, list)) and value else value
            if isinstance(value, int) and not isinstance(value, bool) and value not in found:
                found.append(value)
    return found


def _admitted(module: torch.nn.Module, sizes: list[int]) -> list[str]:
    nn = torch.nn
    if isinstance(module, nn.ConvTranspose2d):  # a generator's seed, or a decoder's features
        return [f"4x{module.in_channels}x{s}x{s}" for s in (1, 4, 8, 16, 32)]
    if isinstance(module, nn.Conv2d):
        planes = [(2 if s > 32 else 4, s) for s in (*sizes, 32, 64, 224, 28, 128, 256, 299)]
        return [f"{n}x{module.in_channels}x{s}x{s}" for n, s in planes]
    if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)):
        return [f"4x{module.in_channels}x{length}" for length in (*sizes, 64, 256, 1024, 4096)]
    if isinstance(module, (nn.Conv3d, nn.ConvTranspose3d)):
        places = ("8x32x32", "16x16x16", "16x112x112", "32x32x32", "4x8x8")
        return [f"2x{module.in_channels}x{place}" for place in places]
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        high = module.num_embeddings
        return [f"2x{n}:int64<{high}" for n in (16, 8, 64)] + [f"4:int64<{high}"]
    if isinstance(module, nn.Linear):
        return _vectors(module.in_features)
    if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
        return _vectors(module.input_size)[::-1]
    if isinstance(module, (nn.BatchNorm2d, nn.InstanceNorm2d)):
        return [f"4x{module.num_features}x{s}x{s}" for s in (8, 32)]
    if isinstance(module, nn.LayerNorm):
        return _vectors(module.normalized_shape[-1])
    return []


def _vectors(features: int) -> list[str]:
    found = [f"4x{features}", f"2x8x{features}"]
    for channels in (1, 3):
        side = round((features / channels) ** 0.5)
        if side > 3 and side * side * channels == features:
            found.append(f"4x{channels}x{side}x{side}")
    return found


FAILURES = (Exception, SystemExit)
ENOUGH = 8.0  # values that a batch norm averages in train mode
TRIES = 4


def find_inputs(
    model: torch.nn.Module, given: tuple[InputSpec, ...], seed: int
) -> tuple[tuple[InputSpec, ...], Any]:
    """Inputs on which forward works, in eval mode and, if there are any, in train mode too.

    Norms over a handful of values make train mode ill-conditioned; such inputs are a last resort.
    """
    if given:
        arguments = arguments_of(given, seed)
        _run(model, arguments, training=False)
        return given, arguments
    problems: list[str] = []
    working: list[tuple[float, tuple[InputSpec, ...], Any]] = []
    for texts in proposals(model):
        specs = tuple(parse_input(text) for text in texts)
        arguments = arguments_of(specs, seed)
        try:
            _run(model, arguments, training=False)
            working.append((0.0, specs, arguments))
            least = _run(model, arguments, training=True)
            working[-1] = (least, specs, arguments)
            if least >= ENOUGH or len(working) >= TRIES:
                break
        except FAILURES as problem:
            failed = describe(problem)
            problems.append(f"{', '.join(texts)}: {failed.kind} {failed.text[:120]}")
    if working:
        _, specs, arguments = max(working, key=lambda item: min(item[0], ENOUGH))
        return specs, arguments
    tried = problems[0] if problems else "forward takes nothing that can be guessed"
    raise ValueError(f"no input found in {len(problems)} tries; the first: {tried}")


def _run(model: torch.nn.Module, arguments: Any, training: bool) -> float:
    """Call the model; the fewest values that one of its batch norms averages (infinity: none)."""
    args, kwargs = arguments
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    averaged = [float("inf")]

    def count(norm: Any, inputs: Any) -> None:
        averaged.append(inputs[0].numel() / max(norm.num_features, 1))

    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    handles = [norm.register_forward_pre_hook(count) for norm in norms]
    model.train(training)
    try:
        with torch.no_grad():
            model(*change(args, torch.clone), **change(kwargs, torch.clone))
            for name, buffer in model.named_buffers():
                if name in before and before[name].shape == buffer.shape:
                    buffer.copy_(before[name])
    finally:
        for handle in handles:
            handle.remove()
    return min(averaged)


def arguments_of(specs: tuple[InputSpec, ...], seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    values = [(spec.name, value(spec, seed + number)) for number, spec in enumerate(specs)]
    args = tuple(value for name, value in values if not name)
    return args, {name: value for name, value in values if name}


def value(spec: InputSpec, seed: int) -> Any:
    if spec.literal:
        return ast.literal_eval(spec.literal)
    draw = np.random.RandomState(seed)
    dtype = getattr(torch, spec.dtype)
    if spec.dtype == "bool":
        return torch.from_numpy(np.asarray(draw.random_sample(spec.shape) < 0.5))
    if not dtype.is_floating_point and not dtype.is_complex:
        numbers = draw.randint(spec.low, spec.high or 10, spec.shape)
        return torch.from_numpy(np.asarray(numbers)).to(dtype)
    return torch.from_numpy(np.asarray(draw.standard_normal(spec.shape))).to(dtype)
