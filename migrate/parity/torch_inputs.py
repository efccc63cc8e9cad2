"""In: a torch model and descriptions of inputs, or none. Out: arguments on which it runs.

Runs in the user's torch environment: needs torch and numpy only.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import torch

from migrate.parity.channel import describe
from migrate.parity.request import InputSpec, parse_input
from migrate.parity.shapes import proposals
from migrate.parity.torch_values import change

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
            answer = describe(problem)
            problems.append(f"{', '.join(texts)}: {answer['type']} {answer['message'][:120]}")
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
